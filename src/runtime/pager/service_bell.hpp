// How the service thread learns that there may be work for it, and sleeps until then.
//
// A thread that has work for it makes the work visible first and rings then; the service thread reads heard()
// first, looks for work then, and sleeps only if nobody has rung since heard().  So a ring is never
// lost.  The thread that rings makes a system call only where the service thread is asleep.
//
// No lock.  Anybody may ring, fault handlers too; one thread sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/blocks/sys.hpp"

namespace ooc::detail {

class service_bell {
 public:
  void ring() noexcept {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) sys::futex_wake_all(rings_);
  }

  /// The value that sleep() needs; read before the look for work.
  std::uint32_t heard() const noexcept { return rings_.load(std::memory_order_seq_cst); }

  /// Returns at the first ring after heard() gave `seen`, and at the latest after `most`, if given;
  /// sometimes earlier.
  void sleep(std::uint32_t seen, const timespec* most) noexcept {
    asleep_.store(true, std::memory_order_seq_cst);
    if (rings_.load(std::memory_order_seq_cst) == seen)
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rings_), FUTEX_WAIT_PRIVATE, seen, most, nullptr, 0);
    asleep_.store(false, std::memory_order_seq_cst);
  }

 private:
  std::atomic<std::uint32_t> rings_{0};  ///< futex of the service thread
  std::atomic<bool> asleep_{false};
};

}  // namespace ooc::detail
