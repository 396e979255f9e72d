// One connection to the metadata server, of a client or of an I/O server.
//
// Frames are read and answered one after another; the next one is read when the answer to the last
// has been taken, so that a session never holds more than one call and one answer in memory.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/wire/frame_stream.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::metad {

class session;

/// What the sessions of a server share.
class session_host {
 public:
  virtual ~session_host() = default;

  virtual wire::server_info who_am_i() const = 0;
  virtual const wire::key_ptr& key() const = 0;
  /// The handshake is over.  Throws connection_error where the session may not go on.
  virtual void welcome(session& s) = 0;
  /// The body of the reply to a frame.  Throws what is to be told to the peer.
  virtual std::string answer(session& s, wire::frame_kind kind, std::string_view body) = 0;
};

class session : public std::enable_shared_from_this<session> {
 public:
  session(session_host& host, std::shared_ptr<wire::stream_socket> socket, std::uint64_t number);

  /// Serves the connection until it ends.  Returns why it did, empty for an orderly end.
  boost::asio::awaitable<std::string> run();
  /// Nothing more is read or answered, not even what has been received already.
  void close();
  bool closed() const noexcept { return closed_; }
  /// Why the connection must be dropped: the peer does not say who it is, or does not take its
  /// answers.  Empty: it need not.
  std::string fault(std::chrono::steady_clock::time_point now) const;

  const std::string& peer() const noexcept { return peer_; }
  const wire::hello_info& client() const noexcept { return client_; }
  bool welcomed() const noexcept { return welcomed_; }
  /// No other session of this server has it.
  std::uint64_t number() const noexcept { return number_; }

 private:
  boost::asio::awaitable<void> shake_hands();
  boost::asio::awaitable<void> serve(const wire::frame_header& h);

  session_host& host_;
  const std::shared_ptr<wire::stream_socket> socket_;
  const std::shared_ptr<wire::frame_sender> sender_;
  wire::frame_reader reader_;
  const std::uint64_t number_;
  const std::string peer_;
  wire::hello_info client_;
  bool welcomed_ = false;
  bool closed_ = false;
  const std::chrono::steady_clock::time_point accepted_ = std::chrono::steady_clock::now();
  boost::asio::steady_timer taken_;  // cancelled when the peer has taken an answer
};

}  // namespace ooc::metad
