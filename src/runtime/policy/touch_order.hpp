// In which order a program has touched the blocks of a segment, or its grains.
#pragma once

#include <cstdint>

namespace ooc::detail {

struct touch_order {
  std::uint64_t onward = 0;     ///< in a sweep, from block to block
  std::uint64_t back = 0;       ///< in one from the last to the first
  std::uint64_t by_steps = 0;   ///< in a walk that leaves the same distance out each time
  std::uint64_t scattered = 0;  ///< in none

  /// A touch that came `step` after the one before it in its sweep; 0: it belongs to none.  `next`: steps of at most so
  /// much are from block to block.
  void add(std::int64_t step, std::int64_t next) noexcept {
    if (step == 0)
      ++scattered;
    else if (step > 0 && step <= next)
      ++onward;
    else if (step < 0 && step >= -next)
      ++back;
    else
      ++by_steps;
  }
  touch_order& operator+=(const touch_order& o) noexcept {
    onward += o.onward;
    back += o.back;
    by_steps += o.by_steps;
    scattered += o.scattered;
    return *this;
  }
  std::uint64_t all() const noexcept { return onward + back + by_steps + scattered; }
};

}  // namespace ooc::detail
