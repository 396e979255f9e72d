// A TCP proxy between a client and a server that does what bad networks do.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/pauses.hpp"
#include "support/raw_connection.hpp"

namespace ooc::testing {

struct proxy_faults {
  // Chances for each block of up to 64 KiB that passes.
  double flip = 0;   ///< one bit is changed
  double drop = 0;   ///< the block is left out
  double cut = 0;    ///< the connection ends in the middle of the block
  double delay = 0;  ///< the block is late by 1 to 20 ms
};

/// Relays from a port of its own to `target` ("127.0.0.x:port"); both directions suffer.
class faulty_proxy {
 public:
  explicit faulty_proxy(const std::string& target, proxy_faults faults = {}, std::uint64_t seed = 0)
      : faults_(faults), target_(loopback(target)), random_(seed) {
    listen_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a = loopback("127.0.0.1:0");
    socklen_t n = sizeof a;
    if (::bind(listen_, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || ::listen(listen_, 64) != 0 ||
        ::getsockname(listen_, reinterpret_cast<sockaddr*>(&a), &n) != 0)
      throw std::runtime_error("the proxy cannot listen");
    address_ = "127.0.0.1:" + std::to_string(ntohs(a.sin_port));
    accepting_ = std::thread([this] { accept(); });
  }
  ~faulty_proxy() {
    stop_ = true;
    accepting_.join();
    for (std::thread& t : relays_) t.join();
    ::close(listen_);
  }
  faulty_proxy(const faulty_proxy&) = delete;

  const std::string& address() const { return address_; }
  std::uint64_t faults() const { return count_; }
  /// That have passed, in both directions.
  std::uint64_t bytes() const { return bytes_; }
  /// From now on every block passes as it is.
  void heal() { healed_ = true; }
  /// The way is lost: connections end, and new ones are refused.
  void cut_off() { way_ = way::closed; }
  /// The way is lost and nobody is told: whatever is sent vanishes.
  void swallow() { way_ = way::silent; }
  /// Answers of servers vanish from now on.
  void deafen() { way_ = way::deaf; }
  /// What clients send on the connections that there are is kept from now on, past their end; new ones are refused.
  void hold() { way_ = way::held; }
  /// The way is there again, for new connections.
  void restore() { way_ = way::open; }
  /// Bytes that were held arrive.
  void let_go() { let_go_ = true; }

 private:
  enum class way { open, closed, silent, deaf, held };

  void accept() {
    while (!stop_) {
      pollfd p{listen_, POLLIN, 0};
      if (::poll(&p, 1, 20) != 1) continue;
      const int client = ::accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      if (way_ == way::closed || way_ == way::held) {
        ::close(client);
        continue;
      }
      const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(server, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0) {
        ::close(client);
        ::close(server);
        continue;
      }
      relays_.emplace_back([this, client, server] { relay(client, server); });
    }
  }

  bool happens(double chance) {
    if (healed_) return false;
    const std::lock_guard lock(mutex_);
    const bool yes = std::uniform_real_distribution<double>(0, 1)(random_) < chance;
    count_ += yes;
    return yes;
  }
  std::uint64_t number(std::uint64_t below) {
    const std::lock_guard lock(mutex_);
    return random_() % below;
  }

  static bool send_all(int to, const char* p, std::size_t n) {
    while (n > 0) {
      const ssize_t sent = ::send(to, p, n, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      p += sent;
      n -= static_cast<std::size_t>(sent);
    }
    return true;
  }

  bool pass(int from, int to, bool answers, std::vector<char>& block) {
    const ssize_t n = ::recv(from, block.data(), block.size(), 0);
    if (n <= 0) return false;
    if (way_ == way::silent || (way_ == way::deaf && answers)) return true;
    auto bytes = static_cast<std::size_t>(n);
    if (happens(faults_.delay)) random_pause(std::chrono::milliseconds(1 + number(20)));
    if (happens(faults_.drop)) return true;
    if (happens(faults_.flip)) block[number(bytes)] ^= static_cast<char>(1 << number(8));
    const bool cut = happens(faults_.cut);
    if (cut) bytes = number(bytes);
    bytes_ += bytes;
    return send_all(to, block.data(), bytes) && !cut;
  }

  void deliver_late(int client, int server) {
    std::vector<char> held, block(64 << 10);
    for (bool more = true; !let_go_ && !stop_;) {
      pollfd p{client, POLLIN, 0};
      if (::poll(&p, 1, 20) <= 0 || !more) {
        if (!more) let_pass(std::chrono::milliseconds(20));
        continue;
      }
      const ssize_t n = ::recv(client, block.data(), block.size(), 0);
      more = n > 0;
      if (more) held.insert(held.end(), block.begin(), block.begin() + n);
    }
    if (stop_ || !send_all(server, held.data(), held.size())) return;
    while (!stop_ && ::recv(server, block.data(), block.size(), MSG_DONTWAIT) != 0)
      let_pass(std::chrono::milliseconds(20));
  }

  void relay(int client, int server) {
    timeval limit{2, 0};  // a peer that takes nothing must not hold the proxy
    ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    std::vector<char> block(64 << 10);
    bool swallowed = false;  // nothing good can follow on this connection
    for (bool open = true; open && !stop_;) {
      if (way_ == way::held) {
        deliver_late(client, server);
        break;
      }
      if (way_ == way::closed || (swallowed && way_ == way::open)) break;
      swallowed = way_ == way::silent;
      pollfd p[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      if (::poll(p, 2, 20) <= 0 || way_ == way::held) continue;
      if (p[0].revents != 0) open = pass(client, server, false, block);
      if (open && p[1].revents != 0) open = pass(server, client, true, block);
    }
    ::close(client);
    ::close(server);
  }

  const proxy_faults faults_;
  const sockaddr_in target_;
  int listen_ = -1;
  std::string address_;
  std::thread accepting_;
  std::vector<std::thread> relays_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> healed_{false};
  std::atomic<bool> let_go_{false};
  std::atomic<way> way_{way::open};
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace ooc::testing
