#include "storage/wire/receive_window.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

namespace ooc::wire {

namespace {

using namespace std::chrono_literals;

constexpr receive_window::seconds averaged = 200ms;
constexpr std::size_t no_limit = 1 << 30;

/// Nothing where the socket is not TCP.
std::optional<receive_window::path> path_of(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return receive_window::path{std::chrono::microseconds(info.tcpi_min_rtt), info.tcpi_advmss};
}

void limit(int socket, std::size_t bytes) noexcept {
  const int value = static_cast<int>(bytes);
  // A window that stays as it is costs speed, not bytes.
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, &value, sizeof value);
}

}  // namespace

bool receive_window::to_be_small(bool was, double rate, const path& p) noexcept {
  return rate < (was ? 2 * slow : slow) && 2 * rate * p.round_trip.count() < static_cast<double>(p.window());
}

void receive_window::follow(int socket, std::size_t bytes, duration waited) noexcept {
  if (time_ > averaged) {
    bytes_ *= averaged / time_;
    time_ = averaged;
  }
  bytes_ += static_cast<double>(bytes);
  time_ += std::max<seconds>(waited, 1us);
  const double rate = bytes_ / time_.count();
  if (!small_ && (rate >= slow || !allowed_)) return;
  const auto p = path_of(socket);
  if (!p) return;
  const bool wanted = allowed_ && to_be_small(small_, rate, *p);
  // Also where it is small already: the system's own adaptation widens it.
  if (wanted || small_) limit(socket, wanted ? p->window() : no_limit);
  small_ = wanted;
}

}  // namespace ooc::wire
