// An I/O server that shakes hands and then does what a test tells it to.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/iod_fixture.hpp"
#include "support/raw_connection.hpp"

namespace ooc::testing {

class scripted_iod {
 public:
  /// Sends to the client; false where the connection has ended.
  using sender = std::function<bool(const std::string& bytes)>;
  /// Decides what to do about a frame on connection `number` (from 1); false ends the connection.
  using script = std::function<bool(std::uint32_t number, const wire::frame_header& h, const sender& say)>;

  /// `epoch`: the one that it says on a connection.
  explicit scripted_iod(
      script s, std::function<std::uint64_t()> epoch = [] { return std::uint64_t{0}; })
      : script_(std::move(s)), epoch_(std::move(epoch)), listen_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a = loopback("127.0.0.1:0");
    socklen_t n = sizeof a;
    if (::bind(listen_.get(), reinterpret_cast<sockaddr*>(&a), n) != 0 || ::listen(listen_.get(), 16) != 0 ||
        ::getsockname(listen_.get(), reinterpret_cast<sockaddr*>(&a), &n) != 0)
      throw std::runtime_error("the scripted server cannot listen");
    address_ = "127.0.0.1:" + std::to_string(ntohs(a.sin_port));
    accepting_ = std::thread([this] { accept(); });
  }
  ~scripted_iod() {
    stop_ = true;
    accepting_.join();
    for (std::thread& t : serving_) t.join();
  }
  scripted_iod(const scripted_iod&) = delete;

  const std::string& address() const { return address_; }
  std::uint32_t connections() const { return connections_; }

  /// A reply to `h`: with `last`, and any other flags.
  static std::string reply(const wire::frame_header& h, const std::string& body = {},
                           std::uint16_t flags = wire::frame_header::last) {
    wire::frame_header r;
    r.kind = wire::frame_kind::reply;
    r.flags = flags;
    r.id = h.id;
    r.incarnation = 1;
    return wire::encode_frame(r, body);
  }

 private:
  bool readable(const file_descriptor& fd) const {
    while (!stop_) {
      pollfd p{fd.get(), POLLIN, 0};
      if (::poll(&p, 1, 20) == 1) return true;
    }
    return false;
  }

  void accept() {
    while (readable(listen_)) {
      file_descriptor fd(::accept4(listen_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd) serving_.emplace_back([this, fd = std::move(fd)] { serve(fd); });
    }
  }

  void serve(const file_descriptor& fd) {
    wire::server_info me;
    me.role = wire::server_role::io;
    me.incarnation = 1;
    me.store_uuid = test_uuid;
    me.epoch = epoch_();
    wire::server_handshake hands(me, {.same_machine = true});
    received_frame f;
    if (!receive(fd, f) || !send_all(fd, hands.welcome(f.header, f.body).send)) return;
    const std::uint32_t number = ++connections_;
    const sender say = [&](const std::string& data) { return send_all(fd, data); };
    while (readable(fd) && receive(fd, f) && script_(number, f.header, say)) {
    }
  }

  const script script_;
  const std::function<std::uint64_t()> epoch_;
  const file_descriptor listen_;
  std::string address_;
  std::atomic<std::uint32_t> connections_{0};
  std::atomic<bool> stop_{false};
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

}  // namespace ooc::testing
