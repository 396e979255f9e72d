// A disk by two numbers: what a request waits for, and how fast all bytes go one after the other.  Requests overlap but
// for their bytes.  Time is that of the replay.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bench::policy {

class disk_model {
 public:
  static constexpr std::uint64_t latency_ns = 100'000;
  static constexpr std::uint64_t bytes_per_us = 1000;

  /// When a request that is made now has been served.
  std::uint64_t transfer(std::uint64_t bytes) noexcept {
    free_ = std::max(free_, now_) + bytes * 1000 / bytes_per_us;
    return free_ + latency_ns;
  }
  std::uint64_t now() const noexcept { return now_; }
  void run(std::uint64_t ns) noexcept { now_ += ns; }
  /// Until `then`, which may be over.
  void wait(std::uint64_t then) noexcept {
    if (then <= now_) return;
    waited_ += then - now_;
    now_ = then;
  }
  std::uint64_t waited() const noexcept { return waited_; }

 private:
  std::uint64_t now_ = 0;   ///< ns
  std::uint64_t free_ = 0;  ///< when the last byte so far has passed
  std::uint64_t waited_ = 0;
};

}  // namespace bench::policy
