// The pager of a runtime: what segments, arrays and the fault handler call, and the parts that do it.
//
//   fault_server     serves a touch as far as nothing must be transferred, or one short read does (signal handler)
//   grains           blocks that are in memory in parts
//   block_loader     loads, which end in a block that is `ready`
//   prefetcher       what is loaded before it is touched, and how far ahead
//   block_writer     cleans blocks that will be evicted, writes back what the program asks for
//   memory_budget    who may take how much of the budget; every refusal for want of memory
//   block_pins       blocks that stay mapped
//   block_dropper    blocks that leave because they are not current, or not wanted, any more
//   stall_relief     what happens where no frame can be had, up to the end of the process
//   service_thread   runs loads, prefetches and cleaning beside the program
//
// They share a pager_state, which has the one mutex (`pager_mutex`), the resident blocks, the queue of
// events, and who waits for a frame.  The pager itself keeps the list of segments, each from add() to
// remove(); no part is at work for a segment any more when remove() returns.
//
// Threads: faults run in the thread that touched the array, under full signal mask; they do what needs
// no transfer, or a short read, themselves and hand the rest to the service thread.  Transfers end on threads of the
// store.  Calls of the program run in its own threads.
//
// Locks: the one mutex, and ownership of blocks by the `busy` state.  Nobody waits for a block while
// holding the mutex, nor touches array memory while holding either.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oocarray/runtime.hpp"
#include "runtime/pager/block_dropper.hpp"
#include "runtime/pager/block_loader.hpp"
#include "runtime/pager/block_pins.hpp"
#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/fault_server.hpp"
#include "runtime/pager/fault_threads.hpp"
#include "runtime/pager/grains.hpp"
#include "runtime/pager/memory_budget.hpp"
#include "runtime/pager/pager_state.hpp"
#include "runtime/pager/prefetcher.hpp"
#include "runtime/pager/run_report.hpp"
#include "runtime/pager/segment.hpp"
#include "runtime/pager/service_thread.hpp"
#include "runtime/pager/stall_relief.hpp"

namespace ooc::detail {

class pager {
 public:
  /// Throws usage_error; std::system_error where there are no threads.
  explicit pager(const runtime_options& options);
  ~pager();
  pager(const pager&) = delete;
  pager& operator=(const pager&) = delete;

  // --- for segments (segment.cpp); see segment.hpp for what they promise
  void add(segment_state& s);
  void remove(segment_state& s);
  /// While it lives, nothing from a block on is read ahead: what was on its way may still arrive, and can be waited
  /// for.
  class arrivals_held_off;
  /// Opens or closes addresses at the end; blocks that are cut off have been dropped.
  void resize_range(segment_state& s, std::uint64_t blocks, std::uint64_t bytes);
  failure writeback(segment_state& s, std::span<const block_range> which);
  segment::invalidated invalidate(segment_state& s, std::span<const block_range> which, bool discard);
  void mark_dirty_as_written(segment_state& s);
  prefetcher& ahead() noexcept { return ahead_; }
  void advise(segment_state& s, access_pattern p);
  void set_read_ahead(segment_state& s, std::uint64_t bytes);
  void set_part(segment_state& s, const segment_part& part);
  detail::grains& grains() noexcept { return grains_; }
  failure promise(segment_state& s, std::span<const block_range> which);
  void clear_promises(segment_state& s, std::span<const block_range> which) { dropper_.clear_promises(s, which); }
  block_pins& pins() noexcept { return pins_; }
  /// The addresses of the process that frames for such blocks, and for their grains, take beside those that are there.
  std::uint64_t addresses_for_frames(std::uint64_t block_bytes, bool in_grains) const noexcept;

  // --- for the fault handler; see fault_server.hpp
  bool on_fault(segment_state& s, std::uint64_t place, touch t, fault_history& h) noexcept {
    return faults_.on_fault(s, place, t, h);
  }
  /// Brings the block of a byte in for a touch that will follow, where another thread would serve that.
  void bring_in(segment_state& s, std::uint64_t place, touch t) noexcept;
  /// A touch of byte `place` that became a signal.  Where touches are served by userfaultfd, only one
  /// that is to be refused does.
  bool on_signal(segment_state& s, std::uint64_t place, touch t) noexcept;

  // --- for arrays and the block layer
  /// Takes the transfer buffers of a store off the budget, once per `store` and until it is gone;
  /// blocks in memory make room.  Throws usage_error (errc::budget_too_small).
  void account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes);
  /// Takes `bytes` off the budget until the result is destroyed, which must be before the pager is;
  /// blocks in memory make room.  Throws usage_error (errc::budget_too_small) naming `what`.
  using reservation = memory_budget::reservation;
  reservation reserve(std::uint64_t bytes, const std::string& what) { return budget_.reserve(bytes, what); }
  reservation lend(std::uint64_t least, std::uint64_t most, bool may_wait, const std::string& what) {
    return budget_.lend(least, most, may_wait, what);
  }
  /// The most that reserve() can be asked for now: what pins and the needs of one instruction leave.
  std::uint64_t spare() const noexcept { return budget_.spare(); }
  /// The block size of arrays that name none: that of the options, or where none was given one of
  /// which the budget as it is now holds what one instruction can need.
  std::uint64_t default_block_bytes() const noexcept { return budget_.default_block_bytes(); }
  std::uint64_t budget() noexcept { return budget_.budget(); }
  /// What has been done so far.
  const run_report& report() const noexcept { return report_; }
  /// Bytes that an algorithm has moved past the blocks in memory, for report().
  void count_direct(std::uint64_t read, std::uint64_t written) noexcept;

  // --- for the end of the runtime (runtime.cpp) and of the process (process_end.cpp)
  /// Has the owner of every open segment close it; no other thread may use one meanwhile.
  void end_owners() noexcept;
  using unwritten = block_writer::unwritten;
  /// Writes back every segment, while other threads go on; returns those that still have modified
  /// blocks.
  std::vector<unwritten> write_back_all() { return writer_.write_back_all(); }
  /// The same list as it is now; empty where somebody holds the lock for long.
  std::vector<unwritten> modified() const { return writer_.modified(); }

 private:
  void drop(segment_state& s);
  mutable pager_state state_;
  block_writer writer_;
  detail::grains grains_;
  block_loader loader_;
  prefetcher ahead_;
  fault_server faults_;
  memory_budget budget_;
  block_pins pins_;
  block_dropper dropper_;
  stall_relief relief_;
  service_thread service_;
  std::unique_ptr<fault_threads> threads_;  ///< where touches are served by userfaultfd
  run_report report_;
};

class pager::arrivals_held_off {
 public:
  /// Returns when what is about to come in has a frame.
  arrivals_held_off(pager& p, segment_state& s, block_index from) noexcept;
  ~arrivals_held_off() { set(~block_index{0}); }
  arrivals_held_off(const arrivals_held_off&) = delete;
  arrivals_held_off& operator=(const arrivals_held_off&) = delete;

 private:
  void set(block_index from) noexcept;

  pager& pager_;
  segment_state& segment_;
};

}  // namespace ooc::detail
