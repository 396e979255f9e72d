// Whether a peer keeps up the least rate of a transfer.
//
// A transfer that has begun holds memory of the server until it has ended.  A peer that takes or sends
// less than `least_rate` over a whole window of it is dropped: any byte now and then is not enough.
#pragma once

#include <chrono>
#include <cstdint>

namespace ooc::servers {

/// One direction of a connection.  Used by one thread at a time.
class transfer_watch {
 public:
  using clock = std::chrono::steady_clock;

  static constexpr std::uint64_t least_rate = 16 << 10;  ///< bytes a second
  static constexpr std::chrono::seconds window{10};

  /// To be called now and then.  `under_way`: bytes of a transfer are to come or to be taken, and the
  /// peer alone is waited for; `bytes`: that it has sent or taken in all.  True where it was too slow
  /// for the last `over`.
  bool too_slow(clock::time_point now, bool under_way, std::uint64_t bytes,
                clock::duration over = window) {
    if (!under_way) {
      since_ = now;
      bytes_ = bytes;
      return false;
    }
    if (now - since_ < over) return false;
    const std::chrono::duration<double> time = now - since_;
    const bool slow =
        static_cast<double>(bytes - bytes_) < static_cast<double>(least_rate) * time.count();
    since_ = now;
    bytes_ = bytes;
    return slow;
  }

 private:
  clock::time_point since_ = clock::now();
  std::uint64_t bytes_ = 0;
};

}  // namespace ooc::servers
