// The options with which a segment is made.
//
// Plain values; the part may be changed later (segment::set_part), under the pager's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/blocks/block_source.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

/// Which blocks are whose, where several processes use a segment.
struct segment_part {
  block_range own = {};                 ///< nobody else writes to these, they are sent whole
  block_range may_write = every_block;  ///< a write to another block is a fault of the program
  block_range near = every_block;       ///< reading ahead that begins in here ends in here
};

/// A grain: what a touch by itself brings in.  One page; where that is 4 KiB, also what nodes check as one.
inline const std::uint64_t grain_bytes = page_bytes;

/// Addresses that a segment can have.
inline constexpr std::uint64_t max_segment_bytes = std::uint64_t{1} << 46;

struct segment_options {
  std::string name;                ///< for messages: the path of the file
  std::uint64_t block_bytes = 0;   ///< multiple of a page
  std::uint64_t blocks = 0;        ///< blocks now
  std::uint64_t max_blocks = 0;    ///< blocks for which addresses are reserved; 0: `blocks`
  std::uint64_t bytes = 0;         ///< of the blocks; pages past them are not accessible; 0: all
  std::uint64_t max_resident = 0;  ///< blocks in memory at most, 4 at least (1 with pinned_only); 0: no limit
  bool pinned_only = false;        ///< nobody touches a block that is not pinned
  bool shared = false;             ///< other processes write to its blocks: send changes only
  bool writable = true;            ///< false: a write to the range is a fault of the program
  segment_part part = {};
  bool temporary = false;   ///< ends with the process, which writes nothing of it back then
  bool note_reads = false;  ///< record which blocks are read: take_read()
  /// The same bytes in blocks of `grain_bytes`, if they may come in such parts where blocks are larger
  /// than a touch is worth.  It must outlive the segment.
  block_source* grains = nullptr;
  std::uint64_t element_bytes = 1;  ///< for grains: what a walk along a row steps by
  std::uint64_t row_bytes = 0;      ///< of an array by rows, from one to the next, for recordings; 0: not known
  /// Called by the end of the runtime where the segment is still open: its owner must close() it.
  std::function<void()> end_owner = {};
};

}  // namespace ooc::detail
