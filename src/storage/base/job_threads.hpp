// Threads that run jobs in the order in which they were posted, each with something of its own.
//
//     job_threads<std::optional<io_worker>> threads(8);
//     threads.post([=](std::optional<io_worker>& w) { ... });   // returns at once
//
// The first thread is there from the beginning, so that a job never fails for want of one; another is made when there
// is a job and none is idle, up to the limit.  Jobs must not throw.  What a thread has of its own begins empty, and a
// job fills it: so where memory is wanting for that, it is wanting to a job, which can say so.
//
// Owner: whoever posts.  The destructor returns when all jobs have been run.  A job may end the owner: the thread that
// it runs on then ends by itself.  A forked child has none of the threads, and leaves everything to its parent.
// Threads: any.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "storage/base/file_size_signal.hpp"
#include "storage/base/mutex.hpp"

namespace ooc {

template <class Worker = std::monostate>
class job_threads {
 public:
  using job = std::function<void(Worker&)>;

  /// Throws std::system_error where no thread can be made.
  explicit job_threads(unsigned most) : queue_(std::make_shared<queue>(most)) { queue_->start(); }
  ~job_threads() {
    if (::getpid() == owner_)
      queue_->stop();
    else
      new std::shared_ptr<queue>(queue_);
  }
  job_threads(const job_threads&) = delete;
  job_threads& operator=(const job_threads&) = delete;

  /// `f` is called with what the thread has of its own, or with nothing.  Throws std::bad_alloc, and then it is not.
  template <class F>
  void post(F f) {
    if constexpr (std::is_invocable_v<F&, Worker&>)
      queue_->post(std::move(f));
    else
      queue_->post([f = std::move(f)](Worker&) { f(); });
  }

 private:
  class queue : public std::enable_shared_from_this<queue> {
   public:
    explicit queue(unsigned most) : most_(most) {}

    void post(job j) {
      const lock_guard lock(mutex_);
      waiting_.push_back(std::move(j));
      work_.notify_one();
      if (waiting_.size() <= idle_ || threads_.size() >= most_ || stopping_) return;
      try {
        add_thread();
      } catch (const std::exception&) {
        // Those that there are do the work; it is theirs by now.
      }
    }

    void start() {
      const lock_guard lock(mutex_);
      add_thread();
    }

    void stop() {
      std::vector<std::thread> threads;
      {
        const lock_guard lock(mutex_);
        stopping_ = true;
        threads.swap(threads_);
        work_.notify_all();
      }
      for (std::thread& t : threads) {
        if (t.get_id() == std::this_thread::get_id())
          t.detach();
        else
          t.join();
      }
    }

   private:
    void add_thread() OOC_REQUIRES(mutex_) {
      threads_.emplace_back([self = this->shared_from_this()] { self->work(); });
    }

    void work() {
      block_file_size_signal();
      static_assert(std::is_nothrow_default_constructible_v<Worker>);
      Worker worker{};
      unique_lock lock(mutex_);
      for (;;) {
        if (waiting_.empty()) {
          if (stopping_) return;
          ++idle_;
          work_.wait(lock);
          --idle_;
          continue;
        }
        job next = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        next(worker);
        next = nullptr;  // what it holds may be the last of the owner
        lock.lock();
      }
    }

    const unsigned most_;
    mutex mutex_;
    condition_variable work_;
    std::deque<job> waiting_ OOC_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_ OOC_GUARDED_BY(mutex_);
    std::size_t idle_ OOC_GUARDED_BY(mutex_) = 0;
    bool stopping_ OOC_GUARDED_BY(mutex_) = false;
  };

  const pid_t owner_ = ::getpid();
  const std::shared_ptr<queue> queue_;
};

}  // namespace ooc
