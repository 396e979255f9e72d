// Which pages have been woken lately: a touch that was read before may be over.
//
// Two threads that touch one page are two touches, and who serves the first wakes both.  Who has read the second one,
// and is slower, would serve a thread that has gone on: a write would mark a block as modified that nobody writes any
// more, perhaps after a writeback.
//
// Lock: its own, with which nothing is called.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

class wake_log {
 public:
  /// Wakes are numbered from 1 as they begin.
  using number = std::uint64_t;

  wake_log() { under_way_.reserve(64); }

  /// The first wake that has not ended: to be asked for before a touch is read.
  number now() const noexcept {
    const lock_guard l(mutex_);
    return under_way_.empty() ? begun_ + 1 : *std::min_element(under_way_.begin(), under_way_.end());
  }

  number begin(const std::byte* page) noexcept {
    const lock_guard l(mutex_);
    pages_[++begun_ % pages_.size()] = page;
    under_way_.push_back(begun_);
    return begun_;
  }
  void end(number n) noexcept {
    const lock_guard l(mutex_);
    under_way_.erase(std::find(under_way_.begin(), under_way_.end(), n));
  }

  /// True where the page of `where` may have been woken by wake `from` or a later one.
  bool woken_since(const std::byte* where, number from) const noexcept {
    const auto page = reinterpret_cast<std::uintptr_t>(where) / page_bytes;
    const lock_guard l(mutex_);
    if (begun_ - from + 1 >= pages_.size()) return begun_ >= from;  // nobody knows: it is touched again
    for (number n = from; n <= begun_; ++n)
      if (reinterpret_cast<std::uintptr_t>(pages_[n % pages_.size()]) / page_bytes == page) return true;
    return false;
  }

 private:
  mutable ooc::mutex mutex_;
  number begun_ OOC_GUARDED_BY(mutex_) = 0;
  std::array<const std::byte*, 256> pages_ OOC_GUARDED_BY(mutex_){};  ///< of the latest
  std::vector<number> under_way_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
