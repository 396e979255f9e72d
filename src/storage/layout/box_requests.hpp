// Boxes of an array file as requests, in both file orders, and the walk over an array in row-major
// order through a bounded buffer.
//
// File orders (array_description::tile; element_order.hpp has the formula): row-major, or tiled:
// the tiles follow one another, and every tile has its full size (those at the upper edges are
// padded).  Tiles are numbered in the grid of the array, or of what it may grow to.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "oocarray/request.hpp"
#include "storage/layout/array_description.hpp"
#include "storage/layout/byte_interval.hpp"

namespace ooc::storage {

using index = std::vector<std::uint64_t>;  ///< elements, slowest dimension first

/// Bytes of the file of an array, padding of edge tiles included, and tiles that have a place but are not part
/// of the array (see array_description::max_extents).  Throws usage_error past 2^63 - 1 and for a tile of the wrong
/// rank or with a 0.
std::uint64_t array_file_bytes(const array_description& a);

/// Of the file of an array that has tiles between those that are part of it: the next bytes at or after `from`
/// that are of tiles of the array, as many as lie together; past the last of them an empty interval.
byte_interval next_tiles(const array_description& a, std::uint64_t from);

/// Bytes of the elements alone.
std::uint64_t array_bytes(const array_description& a);

/// The elements with lower <= i < upper; in memory they lie row-major and packed.
request box_request(const array_description& a, const index& lower, const index& upper);

/// Cuts the array into boxes that follow one another in row-major order, each contiguous there and
/// of at most `max_bytes` (at least one element), whole tiles of rows where they fit.  Calls
/// f(lower, upper, bytes) for each in order.
void for_each_slab(const array_description& a, std::uint64_t max_bytes,
                   const std::function<void(const index&, const index&, std::uint64_t)>& f);

}  // namespace ooc::storage
