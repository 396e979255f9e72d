// A touch of array memory that the processor refused, in the thread that made it.
//
// Serves what needs no transfer: maps what is ready, gives access back, makes a block writable, with
// its twin where it is shared, and gives a promised block an empty frame.  What is short is read here,
// where its node is in this process.  What else must be loaded is queued for the service thread, and the
// thread sleeps on the block's word.
//
// Runs inside a signal handler, under full signal mask: nothing here allocates, throws or logs, and the
// only waits are for the disk, for the pager's mutex, which no interrupted code can hold, for blocks on their way,
// and for a frame, and those hold neither the mutex nor a block.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/pager/block_loader.hpp"
#include "runtime/pager/fault_turn.hpp"
#include "runtime/pager/grains.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class fault_server {
 public:
  /// `hints`: look out for arrays that are read far more than they are touched.
  fault_server(pager_state& state, grains& parts, block_loader& loader, bool hints) noexcept
      : state_(state), grains_(parts), loader_(loader), hints_(hints) {}

  /// A touch of byte `place` of the segment.  Returns when it may be tried again; false if it is an error
  /// of the program.
  bool on_fault(segment_state& s, std::uint64_t place, touch t) noexcept;
  /// The same for another thread's touch, with that thread's history.
  bool on_fault(segment_state& s, std::uint64_t place, touch t, fault_history& h) noexcept;

  /// Marks a block dirty.  One of a shared segment first gets its twin, a copy of `bytes`; false
  /// where no frame is to be had for it now: the caller gives the block up, readable, and calls
  /// frame_waiters::wait(seen).  The caller owns the block.
  bool begin_write(frame* f, const std::byte* bytes, std::uint32_t& seen) noexcept;

 private:
  /// A byte of a block, or of a grain, and what is done to it.
  struct touched {
    segment_state& segment;
    block_index block;
    std::uint32_t offset;
    touch kind;
    std::uint64_t asked;  ///< block_mapping::has_gone_on(); 0: the thread itself asks, and waits
  };
  enum class outcome : std::uint8_t {
    served,
    refused,
    of_grain,  ///< the block is in grains: one of them is touched
    of_block,  ///< the grain's block is not in grains any more
  };

  outcome serve(const touched& at) noexcept;
  /// A write that was served already, together with another one; the caller owns the block.
  bool is_over(const touched& at) const noexcept;
  bool queue(const touched& at) noexcept;
  bool map_without_load(const touched& at) noexcept;
  bool load_inline(const touched& at) noexcept;
  bool map_ready(const touched& at, bool waited) noexcept;
  void wait_for_frame(std::uint32_t seen) noexcept;
  /// A thread has run for so long since its last fault.
  void ran(std::uint64_t ns) noexcept;
  void note(traced what, const touched& at) noexcept;
  void note_mapped(segment_state& s) noexcept OOC_REQUIRES(pager_mutex);
  void note_touch(const touched& at, bool was_out = false) noexcept OOC_REQUIRES(pager_mutex);

  pager_state& state_;
  grains& grains_;
  block_loader& loader_;
  const bool hints_;
  fault_turn turn_;
};

}  // namespace ooc::detail
