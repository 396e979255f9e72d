// How many lines of one kind a reader is given: `most` in `time`, and then one that says that others are left out.
//
// A value, guarded by its owner.
#pragma once

#include <chrono>
#include <cstddef>

namespace ooc::storage {

class line_limit {
 public:
  using clock = std::chrono::steady_clock;
  enum class place { shown, last_shown, left_out };

  constexpr line_limit(std::size_t most, clock::duration time) : most_(most), time_(time) {}

  /// Of the line that comes now.
  place next(clock::time_point now) {
    if (now >= until_) {
      until_ = now + time_;
      lines_ = 0;
    }
    if (lines_ < most_)
      ++lines_;
    else
      return place::left_out;
    return lines_ == most_ ? place::last_shown : place::shown;
  }

 private:
  const std::size_t most_;
  const clock::duration time_;
  clock::time_point until_{};
  std::size_t lines_ = 0;
};

}  // namespace ooc::storage
