// How many of the blocks that have aged are touched again before they are evicted.
//
// A modified block must be written before it is evicted, so blocks are written ahead of that.  One that is touched
// again has been written for nothing: it will be modified once more.  Of a sweep nothing comes back, and to write far
// ahead keeps the disk busy.  Where an array nearly fits in memory, and is used at random, ten come back for one that
// leaves.
//
// Blocks stand in a queue from the one that ages to the one that leaves next (replacement.hpp).  Let E of them leave it
// at its head while R come back, from any place in it.  Of the R, a share p comes back from the first p-th of the
// queue. Where that is written ahead, E + pR blocks are written for E that leave.  With p = E / (E + 3R) that is 4/3 E
// at most.
//
// One for each segment.  Not thread-safe: the pager's lock guards every call.
#pragma once

#include <cstddef>

#include "runtime/policy/policy_numbers.hpp"

namespace ooc::detail {

class aged_return {
 public:
  void evicted() noexcept { count(evicted_); }
  void came_back() noexcept { count(back_); }
  /// How many blocks from the head of a queue of so many are worth writing, rounded.  All, as long as none has come
  /// back.
  std::size_t worth_writing(std::size_t queue) const noexcept {
    const std::size_t all = evicted_ + 1 + policy_numbers::now.aged_back * back_;
    return (queue * (evicted_ + 1) + all / 2) / all;
  }

 private:
  void count(std::size_t& n) noexcept {
    ++n;
    if (evicted_ + back_ < policy_numbers::now.aged_lately) return;
    evicted_ /= 2;
    back_ /= 2;
  }

  std::size_t evicted_ = 0;
  std::size_t back_ = 0;
};

}  // namespace ooc::detail
