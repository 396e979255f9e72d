// The token that hosts pass on, and the meter of how often it came back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace papers {

/// `bytes` bytes that are different on each way round.
class token {
 public:
  explicit token(std::size_t bytes);  ///< throws std::runtime_error for 0

  std::span<std::byte> memory() { return memory_; }
  /// Makes it for the way with this number; `last`: no other comes after it.
  void make(std::uint64_t way, bool last);
  /// Whether this is the last one.  Throws std::runtime_error if a byte is not what make() wrote.
  bool check(std::uint64_t way) const;

 private:
  std::vector<std::byte> memory_;  ///< the first byte says whether it is the last
};

/// Ways a second in slots of equal length, the first of which begins at `begin` (seconds of now()).
/// A way that lies in two slots counts in each with the part of its time that it has there.
class meter {
 public:
  /// `started`: when the first way begins.  Throws std::runtime_error if that is after `begin`.
  meter(double started, double begin, double seconds, std::size_t slots);

  bool over(double now) const { return now >= begin_ + length_ * static_cast<double>(ways_.size()); }
  /// A way has ended.
  void tick(double now);
  /// Complete once a way has ended after the last slot.
  std::vector<double> rates() const;

 private:
  double begin_;
  double length_;  ///< seconds of a slot
  double before_;  ///< when the last way ended
  std::vector<double> ways_;
};

}  // namespace papers
