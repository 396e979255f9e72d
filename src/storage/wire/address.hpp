// Where a server listens: "host:port", "[v6]:port" or "unix:/path".
#pragma once

#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/wire/frame_stream.hpp"

namespace ooc::wire {

struct server_address {
  std::string host;  ///< name or number; empty: a Unix socket
  std::string port;
  std::string path;  ///< of a Unix socket

  std::string text() const;
};

/// Throws usage_error (errc::invalid_request).  Without a port, `default_port`, if that is not
/// empty.
server_address parse_address(std::string_view text, std::string_view default_port = {});

/// Every endpoint that the address stands for; asks the system's name service.
boost::asio::awaitable<std::vector<boost::asio::generic::stream_protocol::endpoint>> resolve(
    const server_address& address);

/// What a connection of ours wants of its socket: no delay for small frames, and an end to peers
/// that have vanished.
void tune(stream_socket& s) noexcept;

/// True for Unix sockets and for addresses that only this machine reaches.
bool is_loopback(const sockaddr* address) noexcept;

/// True where the other end is on this machine: a Unix socket or a loopback address.
bool same_machine(const stream_socket& s) noexcept;

/// The same, and also where both ends have the same address.
bool on_this_host(const stream_socket& s) noexcept;

/// The other end, for messages.
std::string peer_text(const stream_socket& s);

}  // namespace ooc::wire
