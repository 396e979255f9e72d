// Blocks of a segment by their number.
#pragma once

#include <cstdint>

namespace ooc::detail {

using block_index = std::uint64_t;

/// Blocks [first, last).
struct block_range {
  block_index first = 0;
  block_index last = 0;

  bool contains(block_index b) const noexcept { return b >= first && b < last; }
  bool operator==(const block_range&) const = default;
};

}  // namespace ooc::detail
