#include "daemon/listener.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

namespace ooc::servers {

namespace asio = boost::asio;

namespace {

bool is_loopback(const asio::generic::stream_protocol::endpoint& e) {
  if (e.protocol().family() == AF_UNIX) return true;
  asio::ip::tcp::endpoint tcp;
  tcp.resize(e.size());
  std::memcpy(tcp.data(), e.data(), e.size());
  return tcp.address().is_loopback();
}

}  // namespace

listener::listener(asio::io_context& context, handler accepted)
    : context_(context), acceptor_(asio::make_strand(context)), accepted_(std::move(accepted)) {}

std::vector<std::shared_ptr<listener>> listener::open(asio::io_context& context, const std::string& text, bool keyed,
                                                      handler accepted) {
  const wire::server_address address = wire::parse_address(text);
  std::vector<protocol::endpoint> endpoints;
  if (address.host.empty()) {
    endpoints.emplace_back(asio::local::stream_protocol::endpoint(address.path));
  } else {
    asio::ip::tcp::resolver resolver(context);
    boost::system::error_code ec;
    for (const auto& one : resolver.resolve(address.host, address.port, asio::ip::tcp::resolver::passive, ec))
      endpoints.emplace_back(one.endpoint());
    if (ec) throw io_error(ec, "listening on " + text + ": the host's name is not known here");
  }
  std::vector<std::shared_ptr<listener>> all;
  for (const auto& endpoint : endpoints) {
    if (!keyed && !is_loopback(endpoint))
      throw usage_error({EACCES, std::generic_category()},
                        "listening on " + text +
                            ": without a cluster key only this machine is served; make one with "
                            "`ooc keygen FILE` and give it with --key FILE, or listen on 127.0.0.1");
    std::shared_ptr<listener> l(new listener(context, accepted));
    l->bind(endpoint, address);
    all.push_back(std::move(l));
  }
  return all;
}

void listener::bind(const protocol::endpoint& endpoint, const wire::server_address& address) {
  const auto fail = [&](const boost::system::error_code& ec) { throw io_error(ec, "listening on " + address.text()); };
  boost::system::error_code ec;
  host_ = address.host;
  acceptor_.open(endpoint.protocol(), ec);
  if (ec) fail(ec);
  if (endpoint.protocol().family() == AF_UNIX) {
    path_ = address.path;
    // A socket that a dead server left behind is in the way; a live one answers.
    wire::stream_socket probe(context_, endpoint.protocol());
    probe.connect(endpoint, ec);
    if (!ec) fail(boost::system::errc::make_error_code(boost::system::errc::address_in_use));
    ::unlink(path_.c_str());
  } else {
    acceptor_.set_option(asio::socket_base::reuse_address(true), ec);
    if (endpoint.protocol().family() == AF_INET6) {
      const int on = 1;
      ::setsockopt(acceptor_.native_handle(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
  }
  acceptor_.bind(endpoint, ec);
  if (ec) fail(ec);
  // The handshake decides whether a client may connect.
  if (!path_.empty()) ::chmod(path_.c_str(), 0666);
  acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) fail(ec);
}

void listener::start() { asio::co_spawn(acceptor_.get_executor(), accept(), asio::detached); }

asio::awaitable<void> listener::accept() {
  const auto self = shared_from_this();
  while (acceptor_.is_open()) {
    boost::system::error_code ec;
    auto socket = std::make_shared<wire::stream_socket>(asio::make_strand(context_));
    co_await acceptor_.async_accept(*socket, asio::redirect_error(asio::use_awaitable, ec));
    if (!acceptor_.is_open()) break;
    if (!ec) {
      socket->non_blocking(true, ec);
      wire::tune(*socket);
      accepted_(std::move(socket));
      continue;
    }
    spdlog::warn("accepting on {}: {}", address(), ec.message());
    // Out of file descriptors, most likely: give others the time to close some.
    asio::steady_timer pause(acceptor_.get_executor(), std::chrono::milliseconds(100));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
}

void listener::stop() {
  asio::post(acceptor_.get_executor(), [self = shared_from_this()] {
    boost::system::error_code ec;
    self->acceptor_.close(ec);
    if (!self->path_.empty()) ::unlink(self->path_.c_str());
  });
}

std::string listener::address() const {
  if (!path_.empty()) return "unix:" + path_;
  boost::system::error_code ec;
  const auto e = acceptor_.local_endpoint(ec);
  asio::ip::tcp::endpoint tcp;
  tcp.resize(e.size());
  std::memcpy(tcp.data(), e.data(), e.size());
  return wire::server_address{host_, std::to_string(tcp.port()), {}}.text();
}

}  // namespace ooc::servers
