// Grains that a walk down the columns of an array has left.
//
// When such a walk comes to the next grain of a row, it is done with the one before.  Nobody sees that: the
// replacement finds out when it lets the grain age, which it does with all others first that came in earlier, used
// or not.  So the prefetcher names here what it reads ahead for a walk.  When a grain has been touched, and so many
// others after it that a stencil looks back no longer, its neighbour has been left.  Where walks come back to half of
// what they have left, this takes twice as many others, and in the end nothing is named for a while.
//
// Not thread-safe: the pager's lock guards every call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/policy/block_index.hpp"
#include "runtime/policy/policy_numbers.hpp"

namespace ooc::detail {

class left_behind {
 public:
  /// The grain is being read ahead.  Allocates.
  void add(block_index grain) {
    if (given_up_ > 0 && --given_up_ > 0) return;
    if (names_.empty()) names_.resize(capacity);
    if (count_ == capacity) drop();
    names_[(first_ + count_++) % capacity] = grain;
  }
  /// The walk has touched a grain; not every touch is seen.
  void touched(block_index grain) noexcept {
    constexpr std::size_t most = 512;  // as much as is read ahead, by two walks
    const std::size_t end = std::min(count_, passed_ + most);
    for (std::size_t i = passed_; i < end; ++i)
      if (names_[(first_ + i) % capacity] == grain) {
        passed_ = i + 1;
        return;
      }
  }
  /// Whether the neighbour of the first that was named has been left.
  bool due() const noexcept { return passed_ > looked_back_; }
  block_index take() noexcept {
    const block_index grain = names_[first_ % capacity];
    drop();
    return grain;
  }
  /// So many neighbours have aged; one of them was touched again.
  void aged(std::size_t n) noexcept {
    if ((aged_ += n) < 1024) return;
    aged_ /= 2;
    back_ /= 2;
  }
  void came_back() noexcept {
    if (++back_ <= 16 + aged_ / 2) return;
    aged_ = back_ = 0;
    if ((looked_back_ *= 2) <= std::min<std::size_t>(policy_numbers::now.looked_back_most, capacity / 2)) return;
    looked_back_ = policy_numbers::now.looked_back;
    given_up_ = policy_numbers::now.left_pause;
    count_ = passed_ = 0;
  }

 private:
  static constexpr std::size_t capacity = 4096;

  void drop() noexcept {
    ++first_;
    --count_;
    passed_ -= passed_ > 0;
  }

  std::vector<block_index> names_;  ///< a ring
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t passed_ = 0;  ///< of them
  std::size_t looked_back_ = policy_numbers::now.looked_back;
  std::size_t aged_ = 0, back_ = 0;  ///< lately
  std::size_t given_up_ = 0;         ///< for so many more
};

}  // namespace ooc::detail
