// The call that each rank of a group has made: sent ahead of every operation, so that ranks that do not call the same
// find out instead of exchanging nonsense.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ooc::mpi {

/// "2", "0-1, 3": for messages.
std::string list_of_ranks(const std::vector<int>& ranks);

/// One rank's call: fixed size, sent as bytes between processes of one program.
struct call_header {
  std::uint64_t hash = 0;              ///< of the whole text
  std::uint64_t payload = 0;           ///< bytes or (all_reduce) values that the rank brings
  std::array<char, 240> text{};        ///< begin of the text, NUL-terminated
  std::array<std::byte, 256> bytes{};  ///< the payload, where it is bytes and no more than these

  call_header() = default;
  call_header(std::string_view operation, std::string_view call, std::uint64_t payload);
  /// With its payload, if that fits.
  call_header(std::string_view operation, std::string_view call, std::span<const std::byte> brought);
  bool payload_fits() const noexcept { return payload <= bytes.size(); }
  bool same_call(const call_header& o) const noexcept { return hash == o.hash; }
};
static_assert(std::is_trivially_copyable_v<call_header> && sizeof(call_header) == 512);

/// Empty where all called the same; otherwise which ranks called what.
std::string difference(const std::vector<call_header>& calls);

}  // namespace ooc::mpi
