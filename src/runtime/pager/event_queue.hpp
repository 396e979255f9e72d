// The work of the service thread: events that faults and pins post, and misses that found no frame.
//
// The storage for events is made beforehand, so that a fault handler can post one without an
// allocation.  Only the service thread takes events out and sets misses aside.  An event of a segment
// is here, or the service thread is at work for it; forget() removes the former.
//
// Not thread-safe: the pager's lock guards every call.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/blocks/segment_state.hpp"

namespace ooc::detail {

/// The numbers are those of trace_touch (event_trace.hpp).
enum class touch : std::uint8_t { read, write, unknown };

struct touch_event {
  segment_state* segment;
  block_index block;
  touch kind;
  bool miss;  ///< a thread waits; otherwise: the block was touched for the first time
  std::uint64_t stalled_since = 0;
  std::uint32_t offset = 0;  ///< of the touch within the block
  bool was_out = false;      ///< no miss: the thread that touched it has read it itself
};

class event_queue {
 public:
  event_queue() : ring_(ring_size) {}

  /// False where the ring is full: more threads wait than it holds.
  bool post(const touch_event& e) noexcept {
    if (count_ == ring_size) return false;
    ring_[(first_ + count_) % ring_size] = e;
    ++count_;
    return true;
  }
  /// Drops the event under load.
  void post_if_quiet(const touch_event& e) noexcept {
    if (count_ < ring_size / 2) post(e);
  }
  bool empty() const noexcept { return count_ == 0; }
  /// Touches that nobody waits for are worth waking the service thread for when there are some; fewer while some of
  /// them have been of a sweep.
  bool worth_a_ring() const noexcept { return count_ >= (since_sweep_ < 256 ? 8 : 32); }
  /// Notes whether a touch that was taken out has turned out to be of a sweep.
  void note(bool of_sweep) noexcept { since_sweep_ = of_sweep ? 0 : since_sweep_ + 1; }
  touch_event take() noexcept {
    assert(count_ > 0);
    const touch_event e = ring_[first_];
    first_ = (first_ + 1) % ring_size;
    --count_;
    return e;
  }

  /// Sets a miss aside that found no frame, behind those that are waiting already.  Allocates.
  void stall(const touch_event& e) { stalled_.push_back(e); }
  const std::deque<touch_event>& stalled() const noexcept { return stalled_; }
  touch_event take_stalled() noexcept {
    assert(!stalled_.empty());
    const touch_event e = stalled_.front();
    stalled_.pop_front();
    return e;
  }

  /// Drops what is about a segment.
  void forget(const segment_state& s) noexcept {
    std::erase_if(stalled_, [&](const touch_event& e) { return e.segment == &s; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const touch_event e = ring_[(first_ + i) % ring_size];
      if (e.segment != &s) ring_[(first_ + kept++) % ring_size] = e;
    }
    count_ = kept;
  }

 private:
  static constexpr std::size_t ring_size = 8192;

  std::vector<touch_event> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t since_sweep_ = 0;
  std::deque<touch_event> stalled_;
};

}  // namespace ooc::detail
