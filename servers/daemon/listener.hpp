// A listening socket of a server.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/wire/address.hpp"
#include "storage/wire/frame_stream.hpp"

namespace ooc::servers {

class listener : public std::enable_shared_from_this<listener> {
 public:
  /// Gets each new connection: non-blocking, tuned, with a strand of its own.
  using handler = std::function<void(std::shared_ptr<wire::stream_socket>)>;

  /// Listens on every endpoint that `address` stands for.  `keyed`: a cluster key protects the
  /// server; without one only loopback addresses and Unix sockets are allowed.  Throws usage_error
  /// for an address that is not, io_error where it cannot be had.
  static std::vector<std::shared_ptr<listener>> open(boost::asio::io_context& context, const std::string& address,
                                                     bool keyed, handler accepted);

  /// Starts to accept.
  void start();
  void stop();
  /// Where it listens, with the port that the system gave for port 0.
  std::string address() const;

 private:
  using protocol = boost::asio::generic::stream_protocol;
  using acceptor = boost::asio::basic_socket_acceptor<protocol>;

  listener(boost::asio::io_context& context, handler accepted);
  void bind(const protocol::endpoint& endpoint, const wire::server_address& address);
  boost::asio::awaitable<void> accept();

  boost::asio::io_context& context_;
  acceptor acceptor_;
  handler accepted_;
  std::string path_;  // of a Unix socket
  std::string host_;
};

}  // namespace ooc::servers
