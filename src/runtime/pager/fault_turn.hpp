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
  /// At the beginning of a fault; may wait for another thread's turn,
  /// before which it calls `before_wait`.
  template <class F>
  void enter(fault_history& h, const void* block, F before_wait) noexcept {
    if (h.thread == 0) h.thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    const bool same = h.note(block);
    if (holder_.load(std::memory_order_acquire) == h.thread) {
      if (same && h.again < release_after) {
        in_fault_.store(true, std::memory_order_relaxed);
        return;
      }
      h.again = 0;
      end_turn_of(h.thread);
    }
    wait_while_another_holds(h.thread, before_wait);
    if (h.again < take_after) return;
    std::uint32_t nobody = 0;
    if (holder_.compare_exchange_strong(nobody, h.thread, std::memory_order_acq_rel))
      in_fault_.store(true, std::memory_order_relaxed);
  }

  /// At its end.
  void leave(const fault_history& h) noexcept {
    if (holder_.load(std::memory_order_relaxed) != h.thread) return;
    last_seen_.store(sys::now_ns(), std::memory_order_relaxed);
    in_fault_.store(false, std::memory_order_release);
  }

 private:
  static constexpr unsigned take_after = 16;
  static constexpr unsigned release_after = take_after + 32;
  static constexpr std::uint64_t idle_ns = 2'000'000;

  void end_turn_of(std::uint32_t thread) noexcept {
    if (holder_.compare_exchange_strong(thread, 0, std::memory_order_acq_rel)) sys::futex_wake_all(holder_);
  }

  template <class F>
  void wait_while_another_holds(std::uint32_t thread, F before_wait) noexcept {
    for (;;) {
      const std::uint32_t holder = holder_.load(std::memory_order_acquire);
      if (holder == 0 || holder == thread) return;
      before_wait();
      constexpr timespec idle{0, idle_ns};
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&holder_), FUTEX_WAIT_PRIVATE, holder, &idle, nullptr, 0);
      if (!in_fault_.load(std::memory_order_acquire) &&
          sys::now_ns() - last_seen_.load(std::memory_order_relaxed) >= idle_ns)
        end_turn_of(holder);
    }
  }

  std::atomic<std::uint32_t> holder_{0};  ///< thread whose turn it is; a futex
  std::atomic<bool> in_fault_{false};     ///< the holder is being served
  std::atomic<std::uint64_t> last_seen_{0};
};

}  // namespace ooc::detail
