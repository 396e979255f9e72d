// Which blocks are loaded before they are touched, and how many.
//
// read_ahead recognises the sweep and names the blocks; the prefetcher says how far it may go, by the
// budget and the options, and has the loader start the loads, as far as frames are to be had without
// waiting.  A sweep of writes is passed on to the writer, which writes what it has left.
//
// Lock: the pager's.  Threads: touched() runs in the service thread, the rest in calls of the program.
#pragma once

#include <span>
#include <vector>

#include "runtime/pager/block_loader.hpp"
#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class prefetcher {
 public:
  /// `option`: runtime_options::read_ahead.
  prefetcher(pager_state& state, block_loader& loader, block_writer& writer, grains& parts, unsigned option) noexcept
      : state_(state), loader_(loader), writer_(writer), grains_(parts), option_(option) {}

  /// A block was touched for the first time since it came in.
  void touched(unique_lock& l, const touch_event& e) OOC_REQUIRES(pager_mutex);
  /// The same for a grain.  A run over many of them, or a block that is filled with them, has the block
  /// loaded whole.
  void grain_touched(unique_lock& l, const touch_event& e) OOC_REQUIRES(pager_mutex);

  void fetch(segment_state& s, std::span<const block_range> which, arrival then = arrival::waits);
  void fetch_before_sweep(segment_state& s, std::span<const block_range> which);

 private:
  segment_history::sweep follow_grains(unique_lock& l, const touch_event& e) OOC_REQUIRES(pager_mutex);
  void let_go_behind(segment_state& s, block_index touched) OOC_REQUIRES(pager_mutex);
  void make_next(segment_state& s, block_index b) noexcept OOC_REQUIRES(pager_mutex);
  void note_left(unique_lock& l, segment_state& grains) OOC_REQUIRES(pager_mutex);
  unsigned limit_of(const segment_state& s) noexcept OOC_REQUIRES(pager_mutex);
  ahead_group group_for(const segment_state& s, unsigned limit) noexcept OOC_REQUIRES(pager_mutex);

  pager_state& state_;
  block_loader& loader_;
  block_writer& writer_;
  grains& grains_;
  const unsigned option_;
  std::vector<block_index> wanted_;  ///< service thread
  std::vector<block_index> left_;    ///< the same
};

}  // namespace ooc::detail
