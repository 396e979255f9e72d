// How much a connection may have under way to us.
//
// Where many connections share a link, what the system lets each of them have under way fills the
// queue before the link: packets are lost, and those that lost most end last (the incast of
// Phanishayee et al., FAST 2008).  What comes slowly from nearby needs no more than a small window,
// and a receiver that grants no more loses nothing (Wu et al., ICTCP, CoNEXT 2010).
#pragma once

#include <chrono>
#include <cstddef>

namespace ooc::wire {

/// The receive window of one connection, from how fast bytes come that somebody waits for.  Not
/// thread-safe.
class receive_window {
 public:
  using duration = std::chrono::steady_clock::duration;
  using seconds = std::chrono::duration<double>;

  static constexpr std::size_t segments = 20;  ///< of a small window: 29 KB on Ethernet
  static constexpr double slow = 6e6;          ///< bytes a second; from twice that on it is not
  /// So many small windows fit in the queue of a switch's port: some 640 KB, 50 ms of 100 Mbit/s.
  /// More would prevent no losses, and mean more packets for as many bytes.
  static constexpr std::size_t most_at_once = 22;

  /// The path to the peer, as the system reports it.
  struct path {
    seconds round_trip;   ///< the shortest it has seen
    std::size_t segment;  ///< bytes
    std::size_t window() const noexcept { return segments * segment; }
  };

  /// True where the window is to be small for `rate` bytes a second, and it `was` small or not
  /// before.  A small window has to hold more than comes in two round trips, so that it is never
  /// what makes a connection slow.
  static bool to_be_small(bool was, double rate, const path& p) noexcept;

  /// False: from the next bytes on the window is the system's again.
  void allow_small(bool allowed) noexcept { allowed_ = allowed; }
  /// `bytes` have come to the socket after it was `waited` for them.
  void follow(int socket, std::size_t bytes, duration waited) noexcept;
  bool is_small() const noexcept { return small_; }

 private:
  bool allowed_ = true;
  bool small_ = false;
  double bytes_ = 0;  // that came in the last time_ of waiting
  seconds time_{0};
};

}  // namespace ooc::wire
