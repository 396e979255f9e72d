#include "storage/layout/element_type.hpp"

#include <charconv>

namespace ooc::storage {

std::uint32_t element_size(std::string_view type) noexcept {
  constexpr std::string_view structure = "struct";
  const bool is_struct = type.starts_with(structure);
  const std::string_view digits = type.substr(is_struct ? structure.size() : type.empty() ? 0 : 1);
  std::uint32_t n = 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (digits.empty() || digits[0] == '0' || r.ec != std::errc() || r.ptr != digits.data() + digits.size()) return 0;
  if (is_struct) return n <= (1u << 16) ? n : 0;
  switch (type[0]) {
    case 'b': return n == 1 ? n : 0;
    case 'f': return n == 2 || n == 4 || n == 8 || n == 16 ? n : 0;
    case 'c': return n == 8 || n == 16 || n == 32 ? n : 0;
    case 'i':
    case 'u': return n == 1 || n == 2 || n == 4 || n == 8 ? n : 0;
    default: return 0;
  }
}

std::uint32_t element_alignment(std::string_view type, std::uint32_t size) noexcept {
  if (type.empty() || type.starts_with("struct")) return 1;
  return type[0] == 'c' ? size / 2 : size;
}

}  // namespace ooc::storage
