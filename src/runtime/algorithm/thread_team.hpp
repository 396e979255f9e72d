// Threads that do tasks together with the one that asks for them, and wait asleep in between.
//
//     thread_team team(4);                            // three more beside the calling one
//     team.run(tasks, [&](std::size_t task) { ... }); // returns when all are done
//
// An exception of a task comes out of run() when the others have ended; tasks that had not begun then are
// left out.  Where fewer threads can be made, those that there are do the work.
//
// Threads: run() by the one that made the team.
#pragma once

#include <cassert>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/algorithm/worker_threads.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class thread_team {
 public:
  explicit thread_team(unsigned threads) {
    start_threads(others_, threads, [this](unsigned /*thread*/) { serve(); });
  }
  ~thread_team() {
    {
      const lock_guard lock(mutex_);
      stop_ = true;
      begun_.notify_all();
    }
    for (std::thread& t : others_) t.join();
  }
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  std::size_t size() const noexcept { return others_.size() + 1; }

  void run(std::size_t tasks, const std::function<void(std::size_t)>& f) {
    if (tasks == 1 || others_.empty()) {
      for (std::size_t t = 0; t < tasks; ++t) f(t);
      return;
    }
    unique_lock lock(mutex_);
    assert(busy_ == 0 && next_ >= tasks_ && !error_);  // the run before has ended
    work_ = &f;
    next_ = 0;
    tasks_ = tasks;
    begun_.notify_all();
    take_tasks(lock);
    while (busy_ != 0) ended_.wait(lock);
    tasks_ = 0;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void take_tasks(unique_lock& lock) OOC_REQUIRES(mutex_) {
    while (next_ < tasks_) {
      const std::size_t task = next_++;
      const std::function<void(std::size_t)>& f = *work_;
      ++busy_;
      std::exception_ptr thrown;
      {
        const unlocked open(lock, mutex_);
        try {
          f(task);
        } catch (...) {
          thrown = std::current_exception();
        }
      }
      if (thrown) {
        if (!error_) error_ = thrown;
        next_ = tasks_;
      }
      assert(busy_ > 0);
      if (--busy_ == 0) ended_.notify_all();
    }
  }

  void serve() {
    unique_lock lock(mutex_);
    for (;;) {
      while (!stop_ && next_ >= tasks_) begun_.wait(lock);
      if (stop_) return;
      take_tasks(lock);
    }
  }

  mutex mutex_;
  condition_variable begun_, ended_;
  const std::function<void(std::size_t)>* work_ OOC_GUARDED_BY(mutex_) = nullptr;
  std::size_t tasks_ OOC_GUARDED_BY(mutex_) = 0;
  std::size_t next_ OOC_GUARDED_BY(mutex_) = 0;  ///< task that nobody has taken yet
  std::size_t busy_ OOC_GUARDED_BY(mutex_) = 0;  ///< tasks at work
  bool stop_ OOC_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ OOC_GUARDED_BY(mutex_);
  std::vector<std::thread> others_;
};

}  // namespace ooc::detail
