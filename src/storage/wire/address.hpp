// Where a server listens: "host:port", "[v6]:port" or "unix:/path".
#pragma once

#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

/// Connects to the first endpoint of the address that answers; asks the system's name service where it is a name.
/// `socket` is the one that is being connected, for who wants to give up: he closes it, and has `given_up` say so,
/// for while a name is looked up there is none.  Throws connection_refused where there is no such name, else
/// connection_error.
boost::asio::awaitable<void> connect(const server_address& address, std::shared_ptr<stream_socket>& socket,
                                     const std::function<bool()>& given_up);

/// Sets the options that a connection of ours needs: no delay for small frames, and an end to peers that have
/// vanished.
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
