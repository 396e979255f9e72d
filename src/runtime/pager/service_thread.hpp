// The service thread: starts the loads that faults and pins wait for, reads ahead, writes behind.
//
// In each round it first ends the process if something has failed for good, then serves the misses
// that found no frame before, then what has been posted, and writes behind.  It sleeps at the bell;
// while a miss has no frame it is among the frame_waiters, and looks once more before it sleeps.
//
// Lock: the pager's, for the length of a round; the parts that it calls release it.  An event that is
// being handled is in no queue: serves() tells of it.
#pragma once

#include <atomic>
#include <thread>

#include "runtime/pager/block_loader.hpp"
#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/pager_state.hpp"
#include "runtime/pager/prefetcher.hpp"
#include "runtime/pager/stall_relief.hpp"

namespace ooc::detail {

class service_thread {
 public:
  service_thread(pager_state& state, block_loader& loader, prefetcher& ahead, block_writer& writer,
                 stall_relief& relief) noexcept
      : state_(state), loader_(loader), ahead_(ahead), writer_(writer), relief_(relief) {}

  void start();
  /// Ends it after the round that it is in.  Once, after start().
  void stop();

  /// All that is to be done now.  For the thread itself, or for one that does its work where it was not started.
  void round(unique_lock& l) OOC_REQUIRES(pager_mutex);

  /// True while it is at work for a segment; `pager_state::changed` tells when that ends.
  bool serves(const segment_state& s) const noexcept OOC_REQUIRES(pager_mutex) { return serving_ == &s; }

 private:
  void run();
  void give_hints(unique_lock& l) OOC_REQUIRES(pager_mutex);
  void handle(unique_lock& l, const touch_event& e) OOC_REQUIRES(pager_mutex);

  pager_state& state_;
  block_loader& loader_;
  prefetcher& ahead_;
  block_writer& writer_;
  stall_relief& relief_;
  segment_state* serving_ OOC_GUARDED_BY(pager_mutex) = nullptr;
  bool waits_for_frame_ = false;  ///< its own: it is among the frame_waiters
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace ooc::detail
