// One completion for an operation that was sent in several.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"

namespace ooc {

/// Joins `parts` answers, which may come from any threads: the first failure wins, `done` comes
/// after the last answer.
class completion_counter {
 public:
  using completion = std::function<void(const failure&)>;

  completion_counter(std::size_t parts, completion done) : missing_(parts), done_(std::move(done)) {}

  void answer(const failure& f) {
    if (f) {
      const lock_guard lock(mutex_);
      if (!first_) first_ = f;
    }
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_(first());
  }

 private:
  // For the last of the answers: the count has ordered all others before it.
  const failure& first() const OOC_NO_THREAD_SAFETY_ANALYSIS { return first_; }

  std::atomic<std::size_t> missing_;
  mutex mutex_;
  failure first_ OOC_GUARDED_BY(mutex_);
  completion done_;
};

}  // namespace ooc
