// Rounds of tasks that threads share: the next round begins when the tasks of this one are done, and not
// when all threads have come.  So a thread that has lost its processor holds up nobody, unless it has
// a task.
//
//     while (rounds.claim(task)) {
//       ...
//       rounds.done([] { prepare the next round; return its tasks, 0 to stop; });
//     }
//
// The thread that ends the last task of a round runs the function given to done(), while nobody else works.
// Everything that was done in a round is visible in the next.
//
// Threads: any; first() before the others begin.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ooc::detail {

class task_rounds {
 public:
  /// The first round has so many tasks; 0: there is none.
  void first(std::size_t tasks) noexcept { publish(tasks); }

  /// Waits for a task: tasks of a round are numbered from 0.  False: there are no more rounds.
  bool claim(std::size_t& task) noexcept {
    for (;;) {
      const std::uint32_t round = round_.load(std::memory_order_acquire);
      std::uint64_t left = left_.load(std::memory_order_acquire);
      while (count_of(left) != 0)
        if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) {
          task = tasks_ - count_of(left);
          return true;
        }
      if (stopped_.load(std::memory_order_acquire)) return false;
      wait_for_other(round);
    }
  }

  template <class F>
  void done(F&& next) {
    if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1) publish(next());
  }

 private:
  static std::size_t count_of(std::uint64_t left) noexcept { return left & 0xffffffff; }

  void publish(std::size_t tasks) noexcept {
    if (tasks == 0) stopped_.store(true, std::memory_order_release);
    tasks_ = tasks;
    open_.store(tasks, std::memory_order_relaxed);
    const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    left_.store((std::uint64_t{round} << 32) + tasks, std::memory_order_release);
    // notify_all() looks whether anybody waits, and must not do so before the new round can be seen: a
    // plain store may be overtaken by that look, and who falls asleep in between is not woken.
    round_.exchange(round, std::memory_order_seq_cst);
    round_.notify_all();
  }

  void wait_for_other(std::uint32_t round) noexcept {
    for (int spin = 0; spin < 200; ++spin) {
      if (round_.load(std::memory_order_acquire) != round) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield" ::: "memory");
#endif
    }
    round_.wait(round, std::memory_order_acquire);
  }

  std::size_t tasks_ = 0;               ///< of this round; read by those who have one of them
  std::atomic<std::uint64_t> left_{0};  ///< round, and tasks that nobody has claimed
  std::atomic<std::size_t> open_{0};    ///< tasks that are not done
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace ooc::detail
