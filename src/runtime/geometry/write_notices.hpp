// Which blocks a rank has written to, in few bytes.
//
// Blocks are told as intervals, and intervals that repeat (every fourth block, two of ten) as one
// entry: what a loop nest writes takes some bytes, whatever the number of blocks.
//
//     entry = (blocks skipped, blocks written, how often)   as three numbers, 7 bits a byte
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/blocks/block_source.hpp"

namespace ooc::detail {

/// `which`: ascending, no two adjacent.
std::vector<std::byte> packed_notice(std::span<const block_range> which);
/// Throws integrity_error for bytes that packed_notice() does not make.
std::vector<block_range> unpacked_notice(std::span<const std::byte> bytes);

/// The union: ascending, merged.
std::vector<block_range> merged(std::vector<block_range> ranges);

/// The parts of `ranges` that lie in none of `others`.  Both ascend, no two overlap.
std::vector<block_range> without(std::span<const block_range> ranges, std::span<const block_range> others);

}  // namespace ooc::detail
