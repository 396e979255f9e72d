// The page of memory in which blocks are mapped, moved and aligned.
#pragma once

#include <cstdint>

namespace ooc {

/// Bytes.  Blocks are multiples of it on every system, whatever its own page is.
inline constexpr std::uint64_t page_bytes = 4096;

/// The next multiple.
constexpr std::uint64_t in_whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace ooc
