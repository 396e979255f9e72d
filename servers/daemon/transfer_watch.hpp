// Whether a peer keeps up the least rate of a transfer.
//
// A transfer that has begun holds memory of the server until it has ended.  A peer that takes or sends
// less than `least_rate`, and so falls behind by a whole window, is dropped: any byte now and then is not
// enough.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace ooc::servers {

/// One direction of a connection.  Used by one thread at a time.
class transfer_watch {
 public:
  using clock = std::chrono::steady_clock;

  static constexpr std::uint64_t least_rate = 16 << 10;  ///< bytes a second
  static constexpr std::chrono::seconds window{10};

  /// To be called now and then.  `under_way`: bytes of a transfer are to come or to be taken, and the
  /// peer alone is waited for; `bytes`: that it has sent or taken in all.  True where it has fallen behind
  /// by `over`; being fast before does not help it.
  bool too_slow(clock::time_point now, bool under_way, std::uint64_t bytes, clock::duration over = window) {
    const auto elapsed = now - std::exchange(last_, now);
    const std::uint64_t moved = bytes - std::exchange(bytes_, bytes);
    if (!under_way) {
      left_ = over;
      return false;
    }
    const std::chrono::duration<double> worth(static_cast<double>(moved) / least_rate);
    left_ = std::min<std::chrono::duration<double>>(over, left_ + worth) - elapsed;
    return left_.count() <= 0;
  }

 private:
  clock::time_point last_ = clock::now();
  std::uint64_t bytes_ = 0;
  std::chrono::duration<double> left_ = window;  // until it is too slow, if nothing moves
};

}  // namespace ooc::servers
