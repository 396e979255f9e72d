#include "formats/hdf5_signature.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ooc::tool {

std::optional<std::uint64_t> hdf5_superblock(int file) {
  constexpr std::string_view signature("\211HDF\r\n\032\n", 8);
  for (std::uint64_t at = 0;; at = std::max<std::uint64_t>(512, 2 * at)) {
    std::array<char, 8> head{};
    if (::pread(file, head.data(), head.size(), static_cast<off_t>(at)) != static_cast<ssize_t>(head.size())) return {};
    if (std::string_view(head.data(), head.size()) == signature) return at;
  }
}

}  // namespace ooc::tool
