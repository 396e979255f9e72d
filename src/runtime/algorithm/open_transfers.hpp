// Which transfers are on their way, counted by slot: somebody waits for all of a slot.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class open_transfers {
 public:
  explicit open_transfers(std::size_t slots) : count_(slots), slots_(slots) {}
  open_transfers(const open_transfers&) = delete;
  open_transfers& operator=(const open_transfers&) = delete;
  /// What is on its way goes to memory that somebody is about to free.
  ~open_transfers() { wait_for_all(); }

  std::size_t slots() const noexcept { return count_; }
  void begin(std::size_t slot) {
    const lock_guard lock(mutex_);
    ++slots_[slot].open;
  }
  void end(std::size_t slot, const failure& f) {
    const lock_guard lock(mutex_);
    if (f && !slots_[slot].first) slots_[slot].first = f;
    if (--slots_[slot].open == 0) arrived_.notify_all();  // with the lock: who waits may end us
  }
  /// The first failure since somebody waited for this slot.
  failure wait_for(std::size_t slot) {
    unique_lock lock(mutex_);
    arrived_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return slots_[slot].open == 0; });
    return std::exchange(slots_[slot].first, {});
  }
  /// Failures are forgotten.
  void wait_for_all() {
    unique_lock lock(mutex_);
    for (slot_state& s : slots_) {
      arrived_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return s.open == 0; });
      s.first = {};
    }
  }

 private:
  struct slot_state {
    std::size_t open = 0;
    failure first;
  };

  const std::size_t count_;
  mutex mutex_;
  condition_variable arrived_;
  std::vector<slot_state> slots_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
