#include "storage/wire/address.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

namespace ooc::wire {

namespace asio = boost::asio;
using endpoint = asio::generic::stream_protocol::endpoint;

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw usage_error(errc::invalid_request,
                    "address '" + std::string(text) + "': " + why + "; write HOST:PORT, [IPv6]:PORT or unix:/PATH");
}

asio::awaitable<std::vector<endpoint>> resolve(const server_address& address) {
  std::vector<endpoint> found;
  if (address.host.empty()) {
    found.emplace_back(asio::local::stream_protocol::endpoint(address.path));
    co_return found;
  }
  boost::system::error_code ec;
  const auto number = asio::ip::make_address(address.host, ec);
  if (!ec) {
    found.emplace_back(asio::ip::tcp::endpoint(number, static_cast<std::uint16_t>(std::stoul(address.port))));
    co_return found;
  }
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const auto all =
      co_await resolver.async_resolve(address.host, address.port, asio::redirect_error(asio::use_awaitable, ec));
  if (ec) {
    const std::string why = "the host's name cannot be found (" + ec.message() + "); check the name in the URL";
    if (ec == asio::error::host_not_found_try_again)
      throw connection_error({EHOSTUNREACH, std::generic_category()}, why);
    throw connection_refused({EHOSTUNREACH, std::generic_category()}, why);
  }
  for (const auto& one : all) found.emplace_back(one.endpoint());
  co_return found;
}

}  // namespace

asio::awaitable<void> connect(const server_address& address, std::shared_ptr<stream_socket>& socket,
                              const std::function<bool()>& given_up) {
  const auto go_on = [&] {
    if (given_up())
      throw connection_error(std::make_error_code(std::errc::operation_canceled), "connecting was given up");
  };
  const auto endpoints = co_await resolve(address);
  go_on();
  boost::system::error_code ec;
  for (const auto& one : endpoints) {
    socket = std::make_shared<stream_socket>(co_await asio::this_coro::executor, one.protocol());
    ec.clear();
    co_await socket->async_connect(one, asio::redirect_error(asio::use_awaitable, ec));
    go_on();
    if (!ec) {
      socket->non_blocking(true);
      tune(*socket);
      co_return;
    }
  }
  throw connection_error({ec.value(), std::generic_category()}, "no connection: " + ec.message());
}

bool is_loopback(const sockaddr* a) noexcept {
  if (a->sa_family == AF_UNIX) return true;
  if (a->sa_family == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr) >> 24 == 127;
  if (a->sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string server_address::text() const {
  if (host.empty()) return "unix:" + path;
  return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + port;
}

server_address parse_address(std::string_view text, std::string_view default_port) {
  server_address a;
  if (text.substr(0, 5) == "unix:") {
    a.path = text.substr(5);
    if (a.path.empty() || a.path.front() != '/') refuse(text, "the path is not absolute");
    if (a.path.size() > 107) refuse(text, "a Unix socket's path has at most 107 bytes");
    return a;
  }
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '[') {
    const auto end = rest.find(']');
    if (end == rest.npos) refuse(text, "']' is missing");
    a.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') refuse(text, "':' is missing after ']'");
  } else {
    const auto colon = rest.find(':');
    if (colon != rest.npos && rest.find(':', colon + 1) != rest.npos)
      refuse(text, "an IPv6 address stands in brackets");
    a.host = rest.substr(0, colon);
    rest = colon == rest.npos ? std::string_view{} : rest.substr(colon);
  }
  if (a.host.empty()) refuse(text, "no host");
  a.port = rest.empty() ? default_port : rest.substr(1);
  if (a.port.empty()) refuse(text, "no port");
  unsigned long number = 0;
  for (const char c : a.port) {
    if (c < '0' || c > '9') refuse(text, "'" + a.port + "' is not a port");
    number = number * 10 + static_cast<unsigned long>(c - '0');
    if (number > 65535) refuse(text, "a port is at most 65535");
  }
  return a;
}

void tune(stream_socket& s) noexcept {
  const int fd = s.native_handle();
  const int on = 1;
  // Fail where the socket is not TCP, which then needs none of it.
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle = 20, interval = 5, probes = 4;  // seconds; a peer that vanished is found in 40 s
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

bool same_machine(const stream_socket& s) noexcept {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  return ::getpeername(const_cast<stream_socket&>(s).native_handle(), reinterpret_cast<sockaddr*>(&a), &n) == 0 &&
         is_loopback(reinterpret_cast<sockaddr*>(&a));
}

bool on_this_host(const stream_socket& s) noexcept {
  if (same_machine(s)) return true;
  sockaddr_storage here{}, there{};
  socklen_t n = sizeof here, m = sizeof there;
  const int fd = const_cast<stream_socket&>(s).native_handle();
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &n) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &m) != 0 || here.ss_family != there.ss_family)
    return false;
  if (here.ss_family == AF_INET)
    return reinterpret_cast<sockaddr_in*>(&here)->sin_addr.s_addr ==
           reinterpret_cast<sockaddr_in*>(&there)->sin_addr.s_addr;
  return here.ss_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&reinterpret_cast<sockaddr_in6*>(&here)->sin6_addr,
                                                          &reinterpret_cast<sockaddr_in6*>(&there)->sin6_addr);
}

std::string peer_text(const stream_socket& s) {
  boost::system::error_code ec;
  const auto e = s.remote_endpoint(ec);
  if (ec) return "a peer that has gone";
  if (e.protocol().family() == AF_UNIX) return "a Unix socket";
  asio::ip::tcp::endpoint tcp;
  tcp.resize(e.size());
  std::memcpy(tcp.data(), e.data(), e.size());
  const std::string host = tcp.address().to_string();
  return server_address{host, std::to_string(tcp.port()), {}}.text();
}

}  // namespace ooc::wire
