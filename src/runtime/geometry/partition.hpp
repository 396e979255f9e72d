// How the ranks of a group share an array: each has some rows (indices of the first dimension).
//
// Where the file has a stripe for each rank (equal_parts()), a part is a stripe.  Otherwise parts end
// where blocks end, so that no two ranks write to one block.  Both only as far as that leaves them
// about even: the largest part may have a quarter more rows than an even one; else they end at any
// row.  Pure functions.
#pragma once

#include <cstdint>

#include "oocarray/striping.hpp"
#include "runtime/geometry/array_geometry.hpp"

namespace ooc::detail {

/// The elements of part `index` of `parts` of an array in a file with these stripes; empty where there
/// are more parts than rows.
index_box part_of(const array_geometry& g, const striping& s, std::uint64_t index, std::uint64_t parts);

/// Rows in a part where all parts are equal, but for the last ones, which may have fewer or none: each
/// lies together in the file, and can be a stripe of it.  They end where blocks end, or where 4 KiB of
/// the file end, or at any row, whatever is about even first.  0: not without cutting a tile of the
/// file.
std::uint64_t equal_parts(const array_geometry& g, std::uint64_t parts);

/// A part in terms of the blocks of the array; ranges are empty where the part is.
struct part_blocks {
  block_range touched;  ///< hold an element of the part
  block_range own;      ///< hold nothing else
  block_range near;     ///< hold an element of the part or of a row next to it
};
part_blocks blocks_of_part(const array_geometry& g, const index_box& part);

}  // namespace ooc::detail
