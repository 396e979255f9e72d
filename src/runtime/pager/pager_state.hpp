// The state that the parts of the pager share: the memory, the open segments, what is in flight, and how the
// service thread and others are told of it.
//
// One mutex guards all of it, that of `memory` (`pager_mutex` to clang); a thread that finds that
// nothing can go on waits for `changed`, for the word of a block, for `waiters`, or at the bell.
//
// Invariants: a segment is not given up while a transfer of it is in flight (segment_state::transfers)
// or a thread is within its source (segment_state::calls).  transfers() is the sum of the former over
// all segments, stores_in_flight() counts those of them that are stores of a block by itself.  The
// failure that ends the process is set once.
//
// Threads: whoever holds the mutex; fault handlers too, as nothing here allocates but fail().
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/blocks/resident_set.hpp"
#include "runtime/blocks/usage_log.hpp"
#include "runtime/pager/event_queue.hpp"
#include "runtime/pager/frame_waiters.hpp"
#include "runtime/pager/service_bell.hpp"

namespace ooc::detail {

class pager_state {
 public:
  explicit pager_state(std::uint64_t budget, block_mappings m = {})
      : memory(budget, std::move(m)), waiters(memory, bell) {}
  pager_state(const pager_state&) = delete;
  pager_state& operator=(const pager_state&) = delete;

  ooc::mutex& mutex() noexcept OOC_RETURN_CAPABILITY(pager_mutex) { return memory.mutex(); }

  resident_set memory;
  service_bell bell;
  frame_waiters waiters;
  event_queue events OOC_GUARDED_BY(pager_mutex);
  std::vector<segment_state*> segments OOC_GUARDED_BY(pager_mutex);  ///< the open ones
  usage_log usage OOC_GUARDED_BY(pager_mutex);
  /// Waste has been found in a segment, and the service thread is to say so.
  bool hint_due OOC_GUARDED_BY(pager_mutex) = false;
  /// How long threads have run between their faults, all of them together.
  std::atomic<std::uint64_t> ran_ns{0};
  /// A transfer, a copy of a pinned block, a call of a source, a loan or a writer at the end ended, or the service
  /// thread has turned to another segment.  Who waits looks and then waits without letting the mutex go between; a
  /// function that takes the lock may let it go.
  condition_variable changed;

  /// Publishes a block that the caller owned while the mutex was free: whoever looked for a frame passed it over.
  void give_back(block& b, block_state to) noexcept {
    b.publish(to);
    waiters.made_evictable();
  }

  // --- transfers: loads, stores, copies of pinned blocks

  /// Before others see that something is on its way.
  void transfer_begins(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    ++s.transfers;
    ++transfers_;
  }
  void store_begins(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    transfer_begins(s);
    ++stores_in_flight_;
  }
  void transfer_ends(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    assert(s.transfers > 0 && transfers_ >= s.transfers);
    --s.transfers;
    --transfers_;
    changed.notify_all();
    waiters.made_evictable();
    if (!events.stalled().empty() || failed() || stores_in_flight_) bell.ring();
    check_invariants();
  }
  void store_ends(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    assert(stores_in_flight_ > 0);
    --stores_in_flight_;
    transfer_ends(s);
  }
  std::size_t transfers() const noexcept OOC_REQUIRES(pager_mutex) { return transfers_; }
  std::size_t stores_in_flight() const noexcept OOC_REQUIRES(pager_mutex) { return stores_in_flight_; }

  // --- calls of a source: the transfer may end, and with it the last reason to keep the segment,
  // before the source returns

  void call_begins(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) { ++s.calls; }
  void call_ends(segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    assert(s.calls > 0);
    if (--s.calls == 0) changed.notify_all();
  }

  /// Memory in which all open segments could stay, or this rank's parts of them.
  std::uint64_t bytes_to_stay() const noexcept OOC_REQUIRES(pager_mutex) {
    std::uint64_t sum = 0;
    for (const segment_state* s : segments) sum += s->bytes_to_stay();
    return sum;
  }

  /// Somebody waits for a frame: a miss, or a first write to a shared block.
  bool starving() const noexcept OOC_REQUIRES(pager_mutex) {
    return !events.stalled().empty() || waiters.write_starves();
  }

  // --- the failure that ends the process: the service thread sees to it at its next turn

  void fail(const failure& f) OOC_REQUIRES(pager_mutex) {
    if (!fatal_) fatal_ = f;
    failed_ = true;
  }
  bool failed() const noexcept { return failed_; }
  const failure& fatal() const noexcept OOC_REQUIRES(pager_mutex) { return fatal_; }

  /// Asserts the invariants of all that is shared, where asserts are on; before the mutex is let go.  The lists are
  /// walked the more rarely the longer they are.
  void check_invariants() noexcept OOC_REQUIRES(pager_mutex) {
#ifndef NDEBUG
    std::size_t transfers = 0, frames = 0;
    for (const segment_state* s : segments) {
      transfers += s->transfers;
      frames += s->resident_count;
    }
    assert(transfers <= transfers_);  // a segment that closes is in the list no more
    assert(stores_in_flight_ <= transfers_ && failed() == static_cast<bool>(fatal_));
    constexpr std::size_t at_once = 64;
    if (++looks_ % (1 + frames / at_once) != 0) return;
    memory.pool().check_invariants();
    memory.order().check_invariants();
    for (const segment_state* s : segments) check_frames(*s);
#endif
  }

 private:
  std::size_t transfers_ OOC_GUARDED_BY(pager_mutex) = 0;
  std::size_t stores_in_flight_ OOC_GUARDED_BY(pager_mutex) = 0;
  failure fatal_ OOC_GUARDED_BY(pager_mutex);
  std::atomic<bool> failed_{false};
  std::size_t looks_ OOC_GUARDED_BY(pager_mutex) = 0;
};

/// `cause`, with the name of the array and the number of the block in front.
inline failure described(const segment_state& s, block_index b, const char* what, const failure& cause) {
  return {cause.code, "array '" + s.options.name + "', block " + std::to_string(b) + " " + what + ": " + cause.what};
}

}  // namespace ooc::detail
