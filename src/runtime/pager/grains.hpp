// Blocks that are in memory in parts.
//
// A touch that belongs to no sweep brings in a *grain* of 4 KiB, and not its block.  The block is then in the
// state `in_grains`.  Its grains are blocks of a second segment_state over the same addresses
// (segment_state::grains), for which the pager does all that it does for blocks: each has its own state and
// frame, ages, is read ahead, evicted, and written.  This class decides which blocks are in grains, and
// makes them whole again:
//
//   begin()   out -> busy -> in_grains           a touch of a block that is better brought in by parts
//   merge()   in_grains -> loading -> ready      its grains fill it up: the block is loaded, and takes over
//                                                what they hold, modified or not
//   leave()   in_grains -> busy -> out           a call wants the block as such: grains are written and go
//
// A block whose last grain leaves is `out` again, and the memory of their records goes (grain_tables.hpp).
//
// Invariant: a grain is brought in only while its block is in_grains.  Who brings one in holds the block
// (grain_hold) until the grain has a frame or waits for one; merge() and leave() take the block, which nobody can
// who is not the only one, and look at the grains then.  What is on its way in when merge() looks is dropped when it
// arrives.
//
// Lock: the pager's; released while pages move, by leave() also while it waits.  Threads: begin() runs in
// fault handlers and the service thread, merge() in the service thread, end_merge() where its load ends,
// leave() in calls of the program.
#pragma once

#include <span>
#include <vector>

#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class grains {
 public:
  grains(pager_state& state, block_writer& writer) noexcept : state_(state), writer_(writer) {}

  /// Whether blocks may be in memory in parts; and whether these are mapped in another way than blocks.
  bool possible() const noexcept { return state_.memory.mapping_of_grains() != nullptr; }
  bool apart() const noexcept { return state_.memory.mapping_of_grains() != &state_.memory.mapping(); }

  /// True where the block is no longer `out`.  `ahead`: nobody has touched it.
  bool begin(segment_state& s, block_index b, bool ahead = false) noexcept;

  /// True where the block of a grain should be whole: its grains fill half of it.
  static bool filled_up(const segment_state& grains, block_index grain) noexcept OOC_REQUIRES(pager_mutex);
  /// A frame for the block of a grain, which is then `loading`, and the transfer counted.  nullptr: it
  /// stays in grains.
  frame* merge(unique_lock& l, segment_state& grains, block_index grain) OOC_REQUIRES(pager_mutex);
  /// Copies what the parts hold over what was loaded.
  static void take_over(frame* f) noexcept;
  /// Gives the parts up, whose bytes the block has taken over, or which nobody wants any more.
  void end_merge(frame* f, bool taken_over) noexcept OOC_REQUIRES(pager_mutex);
  /// The load has failed: the block is in grains as before, and remains so.
  void undo_merge(frame* f) noexcept OOC_REQUIRES(pager_mutex);

  /// Takes a grain that is out and may come in; see segment_unit::keep_out().
  bool take_out(segment_state& grains, block_index grain) noexcept;
  void let_in(segment_state& grains, block_index grain) noexcept;

  /// Returns when the block is not in grains; or why its grains could not be written.
  failure leave(segment_state& s, block_index b);
  failure leave(segment_state& s, std::span<const block_range> which);

 private:
  bool wanted(segment_state& s, block_index b) noexcept OOC_REQUIRES(pager_mutex);
  bool take_parts(unique_lock& l, segment_state& grains, const block_range& of) OOC_REQUIRES(pager_mutex);
  failure clear(segment_state& grains, const block_range& of);
  bool let_go(segment_state& grains, block_index grain);

  pager_state& state_;
  block_writer& writer_;
  std::vector<frame*> parts_;  ///< service thread
};

}  // namespace ooc::detail
