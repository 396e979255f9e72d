// The stripe size of a file whose creator names none.
#pragma once

#include <cstdint>

#include "oocarray/striping.hpp"

namespace ooc::storage {

/// How a file will be used, as far as its creator knows.
struct stripe_use {
  std::uint64_t file_bytes = 0;   ///< 0: unknown
  std::uint64_t block_bytes = 0;  ///< what a reader moves at a time; 0: 1 MiB
  std::uint64_t row_bytes = 0;    ///< of a matrix in row-major order; 0: no rows
  std::uint64_t readers = 1;      ///< who move blocks at the same time
  bool by_tiles = true;           ///< tiles of the matrix are as usual as blocks; false: they are rare
};

/// A stripe size (sf, bytes, a multiple of 4 KiB) for a file on `nodes` nodes such that what is
/// moved at the same time loads them evenly:
///   - a block of each reader, as if these were neighbours, and
///   - a 2-d tile of as many bytes as a block, whose rows lie `row_bytes` apart in the file; where
///     tiles are rare, one that is half as uneven again will do.
/// Where there are less than 64 KiB of it for each node it goes to fewer nodes, since a request
/// for less costs more than it saves, and the blocks and tiles that come next go to the others.  Of
/// sizes that are as even, the one that cuts a row into fewest regions wins, then the one nearest to
/// 256 KiB.
std::uint64_t choose_stripe(const stripe_use& use, std::uint32_t nodes);

/// `asked`, with a stripe size that is chosen if it has none, in a store of `store_nodes` nodes.
striping with_stripe_size(striping asked, const stripe_use& use, std::uint32_t store_nodes);

/// How unevenly a tile of `height` rows of `width` bytes, `row_bytes` apart, whose first byte is at
/// `offset`, falls on the nodes: bytes on the busiest over the mean.  1 is perfect, `nodes` worst.
double tile_imbalance(std::uint64_t sf, std::uint32_t nodes, std::uint64_t offset, std::uint64_t height,
                      std::uint64_t width, std::uint64_t row_bytes);

}  // namespace ooc::storage
