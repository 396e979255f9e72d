// A touch of array memory that the processor refused, in the thread that made it.
//
// Serves what needs no transfer: maps what is ready, gives access back, makes a block writable, with
// its twin where it is shared, and gives a promised block an empty frame.  What must be loaded is
// queued for the service thread, and the thread sleeps on the block's word.
//
// Runs inside a signal handler, under full signal mask: nothing here allocates, throws or logs, and the
// only waits are for the pager's mutex, which no interrupted code can hold, for blocks on their way,
// and for a frame, and those hold neither the mutex nor a block.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/pager/fault_turn.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class fault_server {
 public:
  /// `hints`: look out for arrays that are read far more than they are touched.
  fault_server(pager_state& state, bool hints) noexcept : state_(state), hints_(hints) {}

  /// Returns when the touch may be tried again; false if it is an error of the program.
  bool on_fault(segment_state& s, block_index b, touch t) noexcept;
  /// The same for another thread's touch, with that thread's history.
  bool on_fault(segment_state& s, block_index b, touch t, fault_history& h) noexcept;

  /// Marks a block dirty.  One of a shared segment first gets its twin, a copy of `bytes`; false
  /// where no frame is to be had for it now: the caller gives the block up, readable, and calls
  /// frame_waiters::wait(seen).  The caller owns the block.
  bool begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept;

 private:
  bool serve_fault(segment_state& s, block_index b, touch t) noexcept;
  bool load_inline(segment_state& s, block_index b, touch t) noexcept;
  bool map_ready(segment_state& s, block_index b, touch t, bool waited) noexcept;
  void wait_for_frame(std::uint32_t seen) noexcept;
  void note_touch(segment_state& s, block_index b, touch t) noexcept OOC_REQUIRES(pager_mutex);

  pager_state& state_;
  const bool hints_;
  fault_turn turn_;
  std::atomic<std::uint64_t> ran_ns_{0};  ///< threads between two of their faults, all together
};

}  // namespace ooc::detail
