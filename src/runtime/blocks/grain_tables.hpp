// The memory that blocks in grains take beside their grains.
//
// A segment with grains has a record of 16 bytes for each grain (segment_state::table), so the grains of 1 MiB fill
// a page of records; and the kernel keeps a page of page-table entries for each 2 MiB of addresses in which
// a page is.  Both come into being as blocks are touched.  They are taken off the budget while a block has
// grains, and given back to the system when the last of them has left: an array many times the
// memory, touched at random, would take all of it for tables otherwise.
//
// A record that is given back reads as zeros afterwards, which is `out`.  Nobody may have a grain in another state
// then, nor be about to: a thread that brings one in holds its block (grain_hold), and the records go only while
// the thread that gives them back owns their block, or the block is not in grains.
//
// A thread that has had a frame of a grain, a hold of its block, or a grain that was kept out calls grain_left() when
// that has ended and no other attempt to bring the grain in follows.  The last of them sees that nothing is left.
//
// Lock: the pager's, which every call has.  begin() may take more than the budget has: whoever takes a frame next
// (frame_pool::take()) makes up for that first.
#pragma once

#include <cstdint>

#include "runtime/blocks/pager_mutex.hpp"
#include "runtime/blocks/segment_state.hpp"

namespace ooc::detail {

class grain_tables {
 public:
  explicit grain_tables(frame_pool& pool) noexcept : pool_(pool) {}

  /// Before the block, which the caller owns, is in grains.
  void begin(segment_state& grains, block_index block) noexcept OOC_REQUIRES(pager_mutex);
  /// Where no grain of the block has a frame, nobody holds it, and no grain waits for a frame or is kept out:
  /// the block, if in grains, is `out` then.
  void end_if_empty(segment_state& grains, block_index block) noexcept OOC_REQUIRES(pager_mutex);
  /// The same for the block of a grain; nothing in a segment of blocks.
  void grain_left(segment_state& s, block_index grain) noexcept OOC_REQUIRES(pager_mutex) {
    if (s.parent) end_if_empty(s, grain / s.grains_in_block);
  }
  /// The same for a block that the caller owns and whose grains are all `out`.
  void end(segment_state& grains, block_index block) noexcept OOC_REQUIRES(pager_mutex);
  /// Of a segment that closes and has no frames any more, neither of grains nor of blocks: what is left of its table.
  void forget(segment_state& grains) noexcept OOC_REQUIRES(pager_mutex);

  /// The most that one grain can take with its frame.
  static std::uint64_t most_for_a_grain() noexcept;

 private:
  frame_pool& pool_;
};

}  // namespace ooc::detail
