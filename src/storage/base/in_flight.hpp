// Counts what is on its way (transfers, calls), keeps the first failure, and lets somebody wait for the end.
//
//     in_flight transfers;
//     transfers.start([&](auto ended) { file.read(request, memory, ended); });   // as often as needed
//     throw_if(transfers.wait());
//
// Owner: whoever waits.  The destructor waits as well, because what is on its way uses memory that its owner is about
// to free.  Threads: any; what is on its way ends on threads of the store.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"

namespace ooc {

class in_flight {
 public:
  in_flight() = default;
  in_flight(const in_flight&) = delete;
  in_flight& operator=(const in_flight&) = delete;
  ~in_flight() { wait_below(1); }

  /// Before something starts.
  void begin() {
    const lock_guard lock(mutex_);
    ++count_;
  }
  /// It has ended.  The last of them may let a thread on that destroys this: nothing is touched afterwards.
  void end(const failure& f = {}) {
    const lock_guard lock(mutex_);
    assert(count_ > 0);
    if (f && !first_) first_ = f;
    --count_;
    fewer_.notify_all();
  }
  /// begin(), and `s` with the function that ends it.  Where `s` throws, nothing has started.
  template <class Start>
  void start(Start s) {
    begin();
    try {
      s([this](const failure& f) { end(f); });
    } catch (...) {
      end();
      throw;
    }
  }

  bool is_below(std::size_t n) const {
    const lock_guard lock(mutex_);
    return count_ < n;
  }
  void wait_below(std::size_t n) {
    unique_lock lock(mutex_);
    fewer_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return count_ < n; });
  }
  /// Returns when all have ended: the first failure since the last call.
  failure wait() {
    unique_lock lock(mutex_);
    fewer_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return count_ == 0; });
    return std::exchange(first_, {});
  }

 private:
  mutable mutex mutex_;
  condition_variable fewer_;
  std::size_t count_ OOC_GUARDED_BY(mutex_) = 0;
  failure first_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc
