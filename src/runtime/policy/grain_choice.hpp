// Whether a block is loaded whole or in grains.
//
// The touched part of a block in grains is seen: the block fills up, or does not.  So where no sweep explains a
// touch, the first blocks come in grains.  Where these fill up, the next ones are loaded whole, but for one
// in four, which shows whether that is still right.
//
// The touched part of a whole block is not seen, and a walk down a column comes to one block after the other
// as a sweep does.  But a thread cannot touch more than it has time for (waste_watch.hpp).  Where it had no time
// for an eighth of each of the last blocks, these are not swept, whatever their order is, until it has had the time.
//
// Not thread-safe: the pager's lock guards every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/policy/policy_numbers.hpp"
#include "runtime/policy/waste_watch.hpp"

namespace ooc::detail {

class grain_choice {
 public:
  /// Decides about a block that no sweep explains, which then comes as decided.
  bool in_grains() noexcept {
    if (filled_ >= policy_numbers::now.filled_for_whole && ++whole_ % policy_numbers::now.grains_among_whole != 0)
      return false;
    filled_ -= std::min(filled_, 2U);
    return true;
  }
  /// A block in grains has filled up.
  void filled() noexcept { filled_ = std::min(filled_ + 3, policy_numbers::now.filled_for_whole + 2); }

  /// A touch has mapped a whole block; `ran_ns` as in waste_watch.
  void mapped_whole(std::uint64_t bytes, std::uint64_t ran_ns) noexcept {
    const double most = policy_numbers::now.hardly_touched;
    const auto for_an_eighth = static_cast<double>(waste_watch::least_ns(bytes));
    const double time = static_cast<double>(ran_ns - std::exchange(last_, ran_ns));
    hardly_ = std::clamp(hardly_ + 1 - time / for_an_eighth, 0.0, most);
    if (hardly_ == most) {
      hardly_touched_ = true;
      filled_ = 0;
    } else if (hardly_ == 0) {
      hardly_touched_ = false;
    }
  }
  /// The last few whole blocks were.
  bool hardly_touched() const noexcept { return hardly_touched_; }

 private:
  unsigned filled_ = 0;
  unsigned whole_ = 0;
  std::uint64_t last_ = 0;  ///< ran_ns at the last block
  double hardly_ = 0;       ///< blocks since there was time for them, a cumulative sum
  bool hardly_touched_ = false;
};

}  // namespace ooc::detail
