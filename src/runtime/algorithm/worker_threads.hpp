// Threads that share a piece of work with the one that asks for it, and the first error of any of them.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::detail {

/// The first exception of several threads; what comes later is dropped.
class first_error {
 public:
  /// Within a catch block.
  void keep() noexcept {
    const lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    kept_ = true;
  }
  bool kept() const noexcept { return kept_; }
  /// Throws it, if there is one.  Nobody calls keep() any more.
  void rethrow() OOC_EXCLUDES(mutex_) {
    const lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutex mutex_;
  std::exception_ptr error_ OOC_GUARDED_BY(mutex_);
  std::atomic<bool> kept_{false};
};

/// Adds threads that call f(k), for 0 < k < threads: as many as the system, and memory, let it make.  `one_at_least`:
/// throws std::system_error or std::bad_alloc where there is none.
template <class F>
void start_threads(std::vector<std::thread>& to, unsigned threads, F f, bool one_at_least = false) {
  try {
    for (unsigned k = 1; k < threads; ++k) to.emplace_back(f, k);
  } catch (const std::exception&) {
    if (one_at_least && to.empty()) throw;
  }
}

/// Calls work(k) for k = 0 in the calling thread, and for 0 < k < threads in threads of their own; returns when all
/// have ended.  `work` must not throw.  Where fewer threads can be made, those that there are do the work; throws
/// std::system_error or std::bad_alloc, before any work, where the work takes a second thread and none can be made.
template <class Work>
void run_on_threads(unsigned threads, Work&& work, bool takes_a_second = false) {
  std::vector<std::thread> others;
  start_threads(others, threads, std::ref(work), takes_a_second);
  work(0u);
  for (std::thread& t : others) t.join();
}

}  // namespace ooc::detail
