// One connection of a remote node, made anew whenever it is lost.
//
// Everything but the sender is called on the thread of its io_context, on which its owner spawns run().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/client/remote_node.hpp"
#include "storage/wire/frame_stream.hpp"

namespace ooc::storage {

/// The events of a connection, as its client hears of them.
class io_connection_owner {
 public:
  virtual ~io_connection_owner() = default;

  virtual const remote_node_options& options() const noexcept = 0;
  /// A number for the next connection, never used before.
  virtual std::uint32_t next_connection() = 0;
  /// Requests may be sent on connection `number` through `sender` from now on.  `near`: the server
  /// is on this host.  `epoch`: as it has said (known_epoch.hpp).
  virtual void connection_up(std::size_t channel, std::uint32_t number, std::shared_ptr<wire::frame_sender> sender,
                             bool near, std::uint64_t epoch) = 0;
  /// A frame has come; takes its payload from the reader.  Throws connection_error.
  virtual boost::asio::awaitable<void> frame_came(std::size_t channel, wire::frame_reader& reader,
                                                  const wire::frame_header& h) = 0;
  /// The connection is gone, or could not be made: nothing uses the memory of its requests but
  /// what its sender has not released yet.
  virtual void connection_down(std::size_t channel, const std::string& why) = 0;
  /// True while requests wait for a connection.
  virtual bool wants_connection() const = 0;
};

class io_connection {
 public:
  io_connection(boost::asio::io_context& context, io_connection_owner& owner, std::size_t index, std::string address);

  /// Returns when the connection was stopped; owner and connection must be there until then.
  boost::asio::awaitable<void> run();
  /// Makes the connection where there is none.
  void wake();
  /// Ends everything.
  void stop();
  /// Gives up a connection that is being made for longer than this.
  void check(std::chrono::steady_clock::time_point now);

  const std::string& address() const noexcept { return address_; }
  /// From now on it connects to this address; without a connection.
  void move_to(const std::string& address);

 private:
  void cut();
  void give_up();
  boost::asio::awaitable<std::uint64_t> shake_hands(wire::frame_reader& reader, std::uint32_t number);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds time);

  io_connection_owner& owner_;
  const std::size_t index_;
  std::string address_;
  std::shared_ptr<wire::stream_socket> socket_;
  std::shared_ptr<wire::frame_sender> sender_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point connecting_since_ = std::chrono::steady_clock::time_point::max();
  bool idle_ = false;  // nothing is wanted: a wake-up ends the pause
  bool stopping_ = false;
  bool given_up_ = false;  // this attempt to connect
};

}  // namespace ooc::storage
