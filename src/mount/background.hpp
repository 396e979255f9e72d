// A few threads for what a completion may not do itself because it waits for a server or a database.
//
// Any thread may post.  Jobs that were posted before the destructor are run by it; they must not throw.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::mount {

class background {
 public:
  explicit background(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~background() {
    {
      const lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (auto& t : threads_) t.join();
  }
  background(const background&) = delete;
  background& operator=(const background&) = delete;

  void post(std::function<void()> job) OOC_EXCLUDES(mutex_) {
    {
      const lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

 private:
  void run() OOC_EXCLUDES(mutex_) {
    for (;;) {
      std::function<void()> job;
      {
        unique_lock lock(mutex_);
        wake_.wait(lock, [this]() OOC_REQUIRES(mutex_) { return ending_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  mutex mutex_;
  condition_variable wake_;
  std::deque<std::function<void()>> jobs_ OOC_GUARDED_BY(mutex_);
  bool ending_ OOC_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ooc::mount
