// How the ranks of a group share an array: each has some rows (indices of the first dimension).
//
// Parts end where blocks end, so that no two ranks write to one block, as far as that leaves them
// about even: where the largest part would have over a quarter more rows than an even one, they end
// at any row.  Pure functions.
#pragma once

#include <cstdint>

#include "runtime/array_geometry.hpp"

namespace ooc::detail {

/// The elements of part `index` of `parts`; empty where there are more parts than rows.
index_box part_of(const array_geometry& g, std::uint64_t index, std::uint64_t parts);

/// What a part means for the blocks of the array; ranges are empty where the part is.
struct part_blocks {
  block_range touched;  ///< hold an element of the part
  block_range own;      ///< hold nothing else
  block_range near;     ///< hold an element of the part or of a row next to it
};
part_blocks blocks_of_part(const array_geometry& g, const index_box& part);

}  // namespace ooc::detail
