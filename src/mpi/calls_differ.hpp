// What each rank of a group has called: sent ahead of every operation, so that ranks that do not
// call the same find out instead of exchanging nonsense.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ooc::mpi {

/// "2", "0-1, 3": for messages.
std::string list_of_ranks(const std::vector<int>& ranks);

/// One rank's call: fixed size, sent as bytes between processes of one program.
struct call_header {
  std::uint64_t hash = 0;        ///< of the whole text
  std::uint64_t payload = 0;     ///< bytes (all_gather) or values (all_reduce) that the rank brings
  std::array<char, 240> text{};  ///< begin of the text, NUL-terminated

  call_header() = default;
  call_header(std::string_view operation, std::string_view call, std::uint64_t payload);
  bool same_call(const call_header& o) const noexcept { return hash == o.hash; }
};
static_assert(std::is_trivially_copyable_v<call_header> && sizeof(call_header) == 256);

/// Empty where all called the same; otherwise which ranks called what.
std::string difference(const std::vector<call_header>& calls);

}  // namespace ooc::mpi
