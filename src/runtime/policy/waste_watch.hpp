// Whether a program reads far more of an array than it touches.
//
// Nobody sees which bytes of a mapped block are touched.  But a thread cannot touch more than it has time
// for: between two faults it runs for so long, and memory gives it some 20 bytes a nanosecond at most.
// Blocks that a touch has mapped are counted in windows of 256.  A window in which the blocks have 8 times
// the bytes that could have been touched while it lasted is waste: a column sweep, random touches, small
// pieces of rows.  A loop that uses what it reads takes 8 times as long at least, however fast it is; time
// lost to other programs counts as time to touch.
//
// One for each segment, which finds waste once.  Lock: the pager's.  For fault handlers, but text().
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace ooc::detail {

class waste_watch {
 public:
  static constexpr std::uint64_t bytes_per_ns = 20;
  static constexpr std::uint64_t times = 8;     ///< more bytes than could be touched are waste
  static constexpr std::uint64_t window = 256;  ///< blocks; nothing depends on it but when a program is told

  /// A touch has mapped a block of which `bytes` were read; threads that fault have run for `ran_ns`, all
  /// of them together, since some time.  True where that ends a window of waste, the first one.
  bool mapped(std::uint64_t bytes, std::uint64_t ran_ns) noexcept;

  /// The time that it takes at least to touch an eighth of so many bytes.
  static std::uint64_t least_ns(std::uint64_t bytes) noexcept { return bytes / times / bytes_per_ns; }

  bool found() const noexcept { return found_; }
  /// True once where waste was found.
  bool take() noexcept { return found_ && !std::exchange(taken_, true); }
  /// The line that says so.
  std::string text(const std::string& array) const;

 private:
  std::uint64_t began_ = 0;  ///< ran_ns when the window did
  std::uint64_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t ran_ = 0;  ///< in the window of waste
  bool found_ = false;
  bool taken_ = false;
};

}  // namespace ooc::detail
