// A thread that does something again and again, when it is due or when somebody wakes it.
//
//     ticker renewal([this] { return renew_what_is_due(); });   // returns when it is due next
//     renewal.wake();                                           // something has changed: look now
//
// The thread is made by the first wake().  Threads: wake() by any; stop() by the owner.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "storage/base/mutex.hpp"

namespace ooc {

class ticker {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr clock::time_point when_woken = clock::time_point::max();

  /// `work` must not throw.  It returns when it is to be called next.
  explicit ticker(std::function<clock::time_point()> work) : work_(std::move(work)) {}
  ~ticker() { stop(); }
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

  void wake() {
    const lock_guard lock(mutex_);
    if (stopping_) return;
    woken_ = true;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_all();
  }
  /// No more calls, and none under way.
  void stop() {
    {
      const lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    unique_lock lock(mutex_);
    for (auto due = when_woken; !stopping_;) {
      if (woken_ || clock::now() >= due) {
        woken_ = false;
        const unlocked gap(lock, mutex_);
        due = work_();
      } else if (due == when_woken) {
        changed_.wait(lock);
      } else {
        (void)changed_.wait_until(lock, due);
      }
    }
  }

  const std::function<clock::time_point()> work_;
  mutex mutex_;
  condition_variable changed_;
  bool woken_ OOC_GUARDED_BY(mutex_) = false;
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ooc
