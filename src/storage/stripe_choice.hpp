// The stripe size of a file whose creator names none.
#pragma once

#include <cstdint>

namespace ooc::storage {

/// A stripe size (sf, bytes, a multiple of 4 KiB) for a file of `file_bytes` on `nodes` nodes such
/// that what is moved at the same time loads them evenly:
///   - `block_bytes` that lie together, and
///   - a 2-d tile of `block_bytes` whose rows lie `row_bytes` apart in the file (0: no rows),
/// or as many nodes as find 64 KiB in it, since a request for less costs more than it saves.  A tile
/// that is `tile_slack` times as uneven as a block counts as much: tiles may be rarer than blocks.
/// Where several sizes are as even, the one that cuts a row into fewest pieces wins, then the one
/// nearest to 256 KiB.  `block_bytes` may be 0: 1 MiB is assumed.
std::uint64_t choose_stripe(std::uint64_t file_bytes, std::uint64_t block_bytes,
                            std::uint64_t row_bytes, std::uint32_t nodes, double tile_slack = 1);

/// How unevenly a tile of `height` rows of `width` bytes, `row_bytes` apart, whose first byte is at
/// `offset`, falls on the nodes: bytes on the busiest over the mean.  1 is perfect, `nodes` worst.
double tile_imbalance(std::uint64_t sf, std::uint32_t nodes, std::uint64_t offset,
                      std::uint64_t height, std::uint64_t width, std::uint64_t row_bytes);

}  // namespace ooc::storage
