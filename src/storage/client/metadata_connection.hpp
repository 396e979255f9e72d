// A connection to a metadata server, for one thread at a time: a question, then its answer.
//
// Calls of the metadata service are few and synchronous, so the calling thread itself sends,
// receives and waits on the socket: no thread of ours stands in between, which is what a call costs
// least.  (I/O servers are spoken to in another way, see remote_node.hpp.)
//
// After an exception other than those of a failed answer the connection is closed.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/wire/frame.hpp"
#include "storage/wire/handshake.hpp"
#include "storage/wire/tls_session.hpp"

namespace ooc::storage {

using deadline_point = std::chrono::steady_clock::time_point;

/// The connection cannot be used any more, or could not be made; another may do.
class connection_lost : public io_error {
  using io_error::io_error;
};

/// The server has refused the handshake; trying again is of no use.
class connection_refused : public usage_error {
  using usage_error::usage_error;
};

class metadata_connection {
 public:
  /// `address`: "host:port", "[v6]:port" or "unix:/path".
  explicit metadata_connection(std::string address);

  /// While a call from now on waits at this moment, `tell` is called on its thread, once.
  void tell_at(deadline_point when, std::function<void()> tell) {
    tell_at_ = when;
    tell_ = std::move(tell);
  }

  bool open() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept;
  /// Connects and shakes hands; with a key both sides prove theirs first.  Throws connection_lost or
  /// connection_refused.
  void connect(const wire::hello_info& me, const wire::key_ptr& key, deadline_point deadline);

  struct answer {
    wire::frame_header header;
    std::string_view body;  ///< until the next call
  };
  /// Sends a frame and waits for the reply to it; a failed one is returned like any other.  Throws
  /// connection_lost, also where the server is another incarnation's than that of the handshake.
  answer ask(wire::frame_kind kind, std::string_view body, deadline_point deadline);

  const wire::server_info& server() const noexcept { return server_; }
  const std::string& address() const noexcept { return address_; }

 private:
  void connect_socket(deadline_point deadline);
  void prove(const wire::key_ptr& key, deadline_point deadline);
  void send(std::string_view bytes, deadline_point deadline);
  wire::frame_header receive(const wire::frame_limits& limits, deadline_point deadline);
  void fill(std::size_t wanted, deadline_point deadline);
  bool same_machine() const noexcept;
  bool wait_for(short events, deadline_point deadline);
  int connect_until(const sockaddr* to, unsigned size, deadline_point deadline);
  [[noreturn]] void lose(int error, const std::string& why);

  std::string address_;
  file_descriptor socket_;
  wire::tls_ptr tls_;  // often none
  wire::server_info server_;
  deadline_point tell_at_ = deadline_point::max();
  std::function<void()> tell_;
  std::uint64_t last_id_ = 0;
  std::string buffer_;               // received; grows to the longest frame
  std::size_t begin_ = 0, end_ = 0;  // of what is not consumed
  std::string_view body_;
};

}  // namespace ooc::storage
