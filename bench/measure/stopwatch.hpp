// Wall-clock and processor time, and a place to put results that the compiler must not optimise away.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

namespace bench {

class stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <class F>
double seconds_of(F&& f) {
  const stopwatch w;
  f();
  return w.seconds();
}

/// Processor time of this thread: for work that waits for nothing, what it takes when no other
/// program takes the processor away.
template <class F>
double thread_seconds_of(F&& f) {
  const auto now = [] {
    timespec t;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  f();
  return now() - start;
}

/// Of all threads of the process, in the system too (CLOCK_PROCESS_CPUTIME_ID).
inline double process_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The least of `n` such times.
template <class F>
double best_of(unsigned n, F&& f) {
  double best = thread_seconds_of(f);
  for (unsigned i = 1; i < n; ++i) best = std::min(best, thread_seconds_of(f));
  return best;
}

/// The compiler must take the value, and all memory, as used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Reads the word at `p`, whatever the compiler thinks of it.
inline void read_word(const void* p) {
  [[maybe_unused]] const unsigned long word = *static_cast<const volatile unsigned long*>(p);
}

}  // namespace bench
