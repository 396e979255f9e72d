// Keeps threads from taking each other's blocks for ever where memory is very small.
//
// The least budget holds what *one* instruction needs (frame_needs.hpp).  Two threads that need
// four blocks each, in memory for four, could go on evicting each other's without either getting
// all of its own.  A thread that faults again and again on the same few blocks therefore takes the
// *turn*: until it has moved on to another block, or has had enough faults for an instruction, the
// faults of other threads wait.  Whether an instruction has been carried out cannot be seen, so a
// turn also ends when its holder has not faulted for a moment.
//
// For fault handlers: allocates nothing, and waits without holding anything.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/blocks/sys.hpp"

namespace ooc::detail {

/// The latest faults of a thread: which blocks they were about.
struct fault_history {
  std::array<const void*, 8> blocks{};
  unsigned next = 0;
  unsigned again = 0;  ///< faults since one was about a block that is not among `blocks`
  std::uint32_t thread = 0;
  std::uint64_t left = 0;   ///< when the last fault had been served; 0: there was none
  std::uint64_t asked = 0;  ///< came with the fault that is served now: block_mapping::has_gone_on(); 0: nothing

  /// True if the block is among the latest.
  bool note(const void* block) noexcept {
    if (std::find(blocks.begin(), blocks.end(), block) != blocks.end()) {
      ++again;
      return true;
    }
    blocks[next++ % blocks.size()] = block;
    again = 0;
    return false;
  }
};

class fault_turn {
 public:
  static constexpr unsigned take_after = 16;  ///< faults on the same blocks
  static constexpr unsigned release_after = take_after + 32;

  /// A turn ends when its holder has not faulted for so long.
  explicit fault_turn(std::uint64_t idle_ns = 2'000'000) noexcept : idle_ns_(idle_ns) {}

  /// At the beginning of a fault; may wait for another thread's turn,
  /// before which it calls `before_wait`.
  template <class F>
  void enter(fault_history& h, const void* block, F before_wait) noexcept {
    if (h.thread == 0) h.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    const bool same = h.note(block);
    std::uint32_t now = turn_.load(std::memory_order_acquire);
    if (holder_of(now) == h.thread) {
      if (same && h.again < release_after) {
        if (turn_.compare_exchange_strong(now, h.thread | in_fault, std::memory_order_acq_rel)) return;
      } else {
        h.again = 0;
        end_turn(now);
      }
    }
    wait_while_another_holds(h.thread, before_wait);
    if (h.again < take_after) return;
    std::uint32_t nobodys = 0;
    turn_.compare_exchange_strong(nobodys, h.thread | in_fault, std::memory_order_acq_rel);
  }

  /// At its end.
  void leave(const fault_history& h) noexcept {
    std::uint32_t mine = h.thread | in_fault;
    if (turn_.load(std::memory_order_relaxed) != mine) return;
    last_seen_.store(sys::now_ns(), std::memory_order_relaxed);
    turn_.compare_exchange_strong(mine, h.thread, std::memory_order_acq_rel);
  }

 private:
  static constexpr std::uint32_t in_fault = 1u << 31;  ///< above all thread ids

  static std::uint32_t holder_of(std::uint32_t turn) noexcept { return turn & ~in_fault; }

  void end_turn(std::uint32_t as_seen) noexcept {
    if (turn_.compare_exchange_strong(as_seen, 0, std::memory_order_acq_rel)) sys::futex_wake_all(turn_);
  }

  template <class F>
  void wait_while_another_holds(std::uint32_t thread, F before_wait) noexcept {
    for (;;) {
      const std::uint32_t seen = turn_.load(std::memory_order_acquire);
      if (seen == 0 || holder_of(seen) == thread) return;
      before_wait();
      constexpr std::uint64_t second = 1'000'000'000;
      const timespec idle{static_cast<time_t>(idle_ns_ / second), static_cast<long>(idle_ns_ % second)};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&turn_), FUTEX_WAIT_PRIVATE, seen, &idle, nullptr, 0);
      const std::uint32_t now = turn_.load(std::memory_order_acquire);
      if (now != 0 && !(now & in_fault) && sys::now_ns() - last_seen_.load(std::memory_order_relaxed) >= idle_ns_)
        end_turn(now);
    }
  }

  const std::uint64_t idle_ns_;
  /// Whose turn it is, 0: nobody's, and whether that thread is being served: one word, so that who ends a turn
  /// and who goes on with it cannot both have their way.  A futex.
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint64_t> last_seen_{0};
};

}  // namespace ooc::detail
