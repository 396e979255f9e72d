// Connections to servers whose bytes the test writes itself.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/wire/frame.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::testing {

using storage::file_descriptor;

/// An address of this machine: "127.0.0.x:port".
inline sockaddr_in loopback(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  if (::inet_pton(AF_INET, address.substr(0, colon).c_str(), &a.sin_addr) != 1)
    throw std::runtime_error(address + " is not an address of the kind that tests use");
  return a;
}

/// A connection that knows nothing of frames.
inline file_descriptor raw_connection(const std::string& address) {
  file_descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in a = loopback(address);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0)
    throw std::runtime_error("no connection to " + address);
  return fd;
}

inline bool send_all(const file_descriptor& fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd.get(), data.data(), data.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

struct received_frame {
  wire::frame_header header;
  std::string body;  ///< and payload
};

/// False where the connection has ended.
inline bool receive(const file_descriptor& fd, received_frame& f) {
  if (::recv(fd.get(), &f.header, sizeof f.header, MSG_WAITALL) != sizeof f.header) return false;
  f.body.resize(std::size_t{f.header.body_bytes} + f.header.payload_bytes);
  return f.body.empty() ||
         ::recv(fd.get(), f.body.data(), f.body.size(), MSG_WAITALL) == static_cast<ssize_t>(f.body.size());
}

/// A connection that has shaken hands with a server that has no key.
inline file_descriptor welcomed(const std::string& address, wire::server_role wanted, const std::string& store = {},
                                const wire::client_id& client = wire::random_client_id(),
                                std::uint32_t connection = 0) {
  file_descriptor fd = raw_connection(address);
  wire::hello_info who;
  who.client = client;
  who.connection = connection;
  who.wanted = wanted;
  who.who = {::geteuid(), ::getegid()};
  who.store_uuid = store;
  who.name = "raw";
  wire::client_handshake hands(who, {.same_machine = true});
  received_frame f;
  if (!send_all(fd, hands.hello().send) || !receive(fd, f)) throw std::runtime_error(address + " does not shake hands");
  if (const failure refused = hands.finish(f.header, f.body)) throw std::runtime_error(address + ": " + refused.what);
  return fd;
}

}  // namespace ooc::testing
