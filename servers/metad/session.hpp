// One connection to the metadata server, of a client or of an I/O server.
//
// Frames are read and answered one after another, each in its client's turn; the next one is read when
// the answer to the last has been taken, so that a session never holds more than one call and one answer
// in memory.  A large one waits for memory in the client's share.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/fair_share.hpp"
#include "daemon/transfer_watch.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/frame_stream.hpp"
#include "storage/wire/greeting.hpp"
#include "storage/wire/handshake.hpp"
#include "storage/wire/metadata_calls.hpp"

namespace ooc::metad {

class session;

/// A frame that waits for its turn.
struct waiting_frame {
  waiting_frame(wire::frame_kind kind, std::string_view body);

  const wire::frame_kind kind;
  const std::string_view body;
  std::optional<wire::sent_call> call;  ///< of one that has a call; else
  std::exception_ptr refused;           ///< why it has none
  std::uint64_t room = 0;               ///< bytes that its answer may take, if they are many
};

/// The parts of a server that its sessions share.
class session_host {
 public:
  virtual ~session_host() = default;

  virtual wire::server_info who_am_i() const = 0;
  virtual const wire::key_ptr& key() const = 0;
  /// Keys that are refused.
  virtual const wire::revocations_ptr& revoked() const = 0;
  /// The handshake is over.  Returns the session's place among the connections.  Throws
  /// connection_error where it may not go on.
  virtual servers::fair_share::claim welcome(session& s) = 0;
  /// Memory for calls and answers.
  virtual const std::shared_ptr<servers::fair_share>& memory() = 0;
  /// Calls `go` when the turn of `who` has come; what the frame asks for is then done at once.
  virtual void take_turn(storage::client_number who, std::function<void(bool)> go) = 0;
  /// True where the peer would lose something that it holds if it did not come back.
  virtual bool holds_something(const session& s) const = 0;
  /// The body of the reply to a frame.  Throws what is to be told to the peer.
  virtual std::string answer(session& s, const waiting_frame& f) = 0;
};

class session : public std::enable_shared_from_this<session> {
 public:
  session(session_host& host, std::shared_ptr<wire::stream_socket> socket, std::uint64_t number);

  /// Serves the connection until it ends.  Returns why it did, empty for an orderly end.
  boost::asio::awaitable<std::string> run();
  /// Nothing more is read or answered, not even what has been received already.
  void close();
  bool closed() const noexcept { return closed_; }
  /// Why the connection must be dropped: the peer does not say who it is, or sends or takes too
  /// slowly (transfer_watch).  Empty: it need not.
  std::string fault(std::chrono::steady_clock::time_point now);

  const std::string& peer() const noexcept { return peer_; }
  const wire::hello_info& client() const noexcept { return client_; }
  /// The key that the peer has proven.
  const wire::holder_mark& holder() const noexcept { return holder_; }
  /// The identity in that key; empty where there are no keys.
  const std::string& identity() const noexcept { return identity_; }
  bool welcomed() const noexcept { return welcomed_; }
  storage::client_number number_in_shares() const noexcept { return who_; }
  /// When the peer last asked something.
  std::chrono::steady_clock::time_point heard() const noexcept { return heard_; }
  /// True where nothing is lost with the connection.
  bool may_give_way() const { return !busy_ && !reader_.inside() && !host_.holds_something(*this); }
  /// No other session of this server has it.
  std::uint64_t number() const noexcept { return number_; }

 private:
  boost::asio::awaitable<void> shake_hands();
  boost::asio::awaitable<void> serve(const wire::frame_header& h);
  boost::asio::awaitable<servers::fair_share::claim> take_memory(std::uint64_t bytes);
  boost::asio::awaitable<void> answer(std::uint64_t id, const waiting_frame& f, servers::fair_share::claim memory);

  session_host& host_;
  const std::shared_ptr<wire::stream_socket> socket_;
  const std::shared_ptr<wire::frame_sender> sender_;
  wire::frame_reader reader_;
  const std::uint64_t number_;
  const std::string peer_;
  wire::hello_info client_;
  wire::holder_mark holder_{};
  std::string identity_;
  bool welcomed_ = false;
  bool closed_ = false;
  const std::chrono::steady_clock::time_point accepted_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point heard_ = accepted_;
  storage::client_number who_;
  servers::fair_share::claim place_;  // among the connections
  bool busy_ = false;                 // with a frame
  bool waiting_ = false;              // for a turn or for memory
  servers::transfer_watch coming_, going_;
  boost::asio::steady_timer taken_;  // cancelled when the peer has taken an answer
};

}  // namespace ooc::metad
