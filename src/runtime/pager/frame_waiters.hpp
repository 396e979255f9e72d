// The threads that found no frame, and sleep until one may be had.
//
// Three kinds wait here: writes to shared blocks that found no frame for their twin, each in its own
// thread, grains for the end of a pin or copy, and the service thread, on behalf of misses.  Whatever may end that (a
// transfer that ended, a block that is nobody's any more, a pin or memory given back) calls made_evictable().
//
// No wake-up is lost, but for two writes that passed over each other's block while it was `busy`: look_again() is
// for them.  made_evictable() advances `room_` first and then looks at `hungry_`; a thread that
// goes to sleep raises `hungry_` first and then looks once more: wait() at `room_`, which the kernel
// compares with what it was before the look that found no frame, and the service thread at the
// bell and then at everything.  Both orders are sequentially consistent, so one of the two sees the
// other.  Where nobody waits made_evictable() makes no system call.
//
// One write at a time is the *starved* one: the first that found no frame and has not been served.
// It tries again by itself, and is forgotten when it no longer does: another thread may have written
// to the block, or it may have gone.  The relief of stalls counts from it.
//
// Locks: the counts are atomic; the starved write is under the pager's lock.  For fault handlers:
// nothing here allocates.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/blocks/resident_set.hpp"
#include "runtime/pager/event_queue.hpp"
#include "runtime/pager/service_bell.hpp"

namespace ooc::detail {

class frame_waiters {
 public:
  frame_waiters(resident_set& memory, service_bell& bell) noexcept : memory_(memory), bell_(bell) {}
  frame_waiters(const frame_waiters&) = delete;
  frame_waiters& operator=(const frame_waiters&) = delete;

  /// The value that wait() needs; read before the look for a frame.
  std::uint32_t look() const noexcept { return room_.load(std::memory_order_seq_cst); }

  /// Sleeps until a frame may be had; `seen` is what look() gave before the look that found none.
  /// The service thread cleans something meanwhile, and ends the process where nothing helps.
  void wait(std::uint32_t seen) noexcept OOC_EXCLUDES(pager_mutex) {
    {
      unique_lock l(memory_.mutex());
      ++twins_awaited_;
    }
    hungry_.fetch_add(1, std::memory_order_seq_cst);
    bell_.ring();
    sys::futex_wait(room_, seen);
    hungry_.fetch_sub(1, std::memory_order_seq_cst);
    unique_lock l(memory_.mutex());
    --twins_awaited_;
    starved_seen_ = sys::now_ns();  // it tries again at once
  }

  /// A frame may be had that could not before.  Called after a block was published, too: one that was
  /// `busy` was passed over.
  void made_evictable() noexcept {
    room_.fetch_add(1, std::memory_order_seq_cst);
    if (hungry_.load(std::memory_order_seq_cst) == 0) return;
    sys::futex_wake_all(room_);
    bell_.ring();
  }

  /// Has all waiting writes look again.
  void look_again() noexcept {
    room_.fetch_add(1, std::memory_order_seq_cst);
    sys::futex_wake_all(room_);
  }

  /// For the service thread: from now on made_evictable() rings for it.  It looks for a frame once
  /// more before it sleeps, for what came before.
  void service_begins() noexcept { hungry_.fetch_add(1, std::memory_order_seq_cst); }
  void service_ends() noexcept { hungry_.fetch_sub(1, std::memory_order_seq_cst); }
  bool any() const noexcept { return hungry_.load() != 0; }

  // --- the starved write

  void write_found_none(segment_state& s, block_index b) noexcept OOC_REQUIRES(pager_mutex) {
    const bool first = !write_starves() || !starved_.segment;
    starved_seen_ = sys::now_ns();
    if (first) starved_ = {&s, b, touch::write, true, starved_seen_};
  }
  void write_found_one() noexcept OOC_REQUIRES(pager_mutex) { starved_ = {}; }
  bool write_starves() const noexcept OOC_REQUIRES(pager_mutex) {
    return twins_awaited_ > 0 || (starved_.segment && sys::now_ns() - starved_seen_ < still_trying);
  }
  /// Without a segment where there is none.
  const touch_event& starved_write() const noexcept OOC_REQUIRES(pager_mutex) { return starved_; }
  void forget(const segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    if (starved_.segment == &s) starved_ = {};
  }

 private:
  static constexpr std::uint64_t still_trying = 1'000'000'000;  ///< ns since it was last seen

  resident_set& memory_;
  service_bell& bell_;
  std::atomic<std::uint32_t> room_{0};                      ///< futex of writes that wait for a twin
  std::atomic<std::uint32_t> hungry_{0};                    ///< threads that wait for a frame
  unsigned twins_awaited_ OOC_GUARDED_BY(pager_mutex) = 0;  ///< threads asleep in wait()
  touch_event starved_ OOC_GUARDED_BY(pager_mutex){};
  std::uint64_t starved_seen_ OOC_GUARDED_BY(pager_mutex) = 0;  ///< when it last tried
};

}  // namespace ooc::detail
