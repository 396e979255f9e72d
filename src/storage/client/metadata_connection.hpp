// A connection to a metadata server, for one thread at a time: a question, then its answer.
//
// It is connected, greeted and framed as the connections to I/O servers are (io_connection.hpp).  But calls of
// the metadata service are few and synchronous, so the calling thread itself runs the connection's io_context,
// until the answer is there or the time is up: no thread of ours stands in between, which is what a call costs
// least.
//
// After an exception other than those of a failed answer the connection is closed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "storage/wire/frame_stream.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::storage {

using deadline_point = std::chrono::steady_clock::time_point;

class metadata_connection {
 public:
  /// `address`: "host:port", "[v6]:port" or "unix:/path".
  explicit metadata_connection(std::string address);
  ~metadata_connection();

  /// While a call from now on waits at this moment, `tell` is called on its thread, once.  It must not throw.
  void tell_at(deadline_point when, std::function<void()> tell) {
    tell_at_ = when;
    tell_ = std::move(tell);
  }

  /// The program did not run while the last call, or attempt to connect, waited (outage.hpp).
  bool stopped() const noexcept { return stopped_; }
  bool open() const noexcept { return open_; }
  /// For the connections from now on.
  void set_address(std::string address) { address_ = std::move(address); }
  void close() noexcept;
  /// Connects and shakes hands; with a key both sides prove theirs first.  Throws wire::connection_refused where
  /// trying again is of no use, wire::connection_error where another attempt may do.
  void connect(const wire::hello_info& me, const wire::key_ptr& key, deadline_point deadline);

  struct answer {
    wire::frame_header header;
    std::string_view body;  ///< until the next call
  };
  /// Sends a frame and waits for the reply to it; a failed one is returned like any other.  Throws
  /// wire::connection_error, also where the server is another incarnation's than that of the handshake.
  answer ask(wire::frame_kind kind, std::string_view body, deadline_point deadline);

  const wire::server_info& server() const noexcept { return server_; }
  const std::string& address() const noexcept { return address_; }

 private:
  boost::asio::awaitable<void> greet(const wire::hello_info& me, const wire::key_ptr& key);
  void run(boost::asio::awaitable<void> what, deadline_point deadline);

  std::string address_;
  boost::asio::io_context context_{1};
  std::shared_ptr<wire::stream_socket> socket_;  // there while connecting and connected
  std::unique_ptr<wire::frame_reader> reader_;
  std::shared_ptr<wire::frame_sender> sender_;
  wire::server_info server_;
  deadline_point tell_at_ = deadline_point::max();
  std::function<void()> tell_;
  std::uint64_t last_id_ = 0;
  bool open_ = false;
  // Of the last call or attempt to connect: its time was up, perhaps before all was sent.
  bool late_ = false, unsent_ = false, stopped_ = false;
};

}  // namespace ooc::storage
