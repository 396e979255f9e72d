// Where the threads of a pass meet between two steps of the wavefront: the last one to come does
// what must be done alone, and then all go on.
#pragma once

#include <atomic>

namespace ooc::detail {

class meeting {
 public:
  /// How many come; before the first does.
  void expect(unsigned threads) noexcept { threads_ = threads; }

  /// Returns when all threads have come and the last one has run `alone`.
  template <class F>
  void come(F&& alone) noexcept(noexcept(alone())) {
    const unsigned round = round_.load(std::memory_order_acquire);
    if (came_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      alone();
      came_.store(0, std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_release);
      round_.notify_all();
      return;
    }
    for (int spin = 0; spin < 100; ++spin) {
      if (round_.load(std::memory_order_acquire) != round) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    while (round_.load(std::memory_order_acquire) == round) round_.wait(round);
  }

 private:
  unsigned threads_ = 1;
  std::atomic<unsigned> came_{0};
  std::atomic<unsigned> round_{0};
};

}  // namespace ooc::detail
