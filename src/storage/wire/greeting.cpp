#include "storage/wire/greeting.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "storage/wire/address.hpp"

// gcc 12 sees the wrong one of the two ways in which Asio frees the frames of coroutines.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace ooc::wire {

namespace asio = boost::asio;

namespace {

void take(const handshake_step& step, frame_sender& sender) {
  if (!step.send.empty()) sender.send({step.send, {}, {}});
  if (step.refused) throw connection_refused(step.refused.code, step.refused.what);
}

asio::awaitable<void> wait(stream_socket& s, stream_socket::wait_type what) {
  boost::system::error_code ec;
  co_await s.async_wait(what, asio::redirect_error(asio::use_awaitable, ec));
  if (ec) throw connection_error(std::make_error_code(std::errc::connection_reset), "the connection was lost");
}

/// Both sides prove their keys; from then on frames go through the session that is returned.
asio::awaitable<tls_ptr> prove(const greeted_connection& c, tls_session::side which, const key_ptr& key) {
  const auto session = std::make_shared<tls_session>(c.socket.native_handle(), which, key);
  for (;;) switch (session->handshake()) {
      case tls_session::progress::done:
        c.reader.use(session);
        c.sender.use(session);
        co_return session;
      case tls_session::progress::wants_read: co_await wait(c.socket, stream_socket::wait_read); break;
      case tls_session::progress::wants_write: co_await wait(c.socket, stream_socket::wait_write); break;
      case tls_session::progress::failed:
        if (session->fault().code == std::errc::permission_denied)
          throw connection_refused(session->fault().code, session->fault().what);
        throw connection_error(session->fault().code, session->fault().what);
    }
}

/// Whether the client begins with TLS.
asio::awaitable<bool> begins_with_tls(stream_socket& s) {
  for (;;) {
    char first = 0;
    const ssize_t n = ::recv(s.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1) co_return first == tls_begin;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      throw connection_error(std::make_error_code(std::errc::connection_reset), "the connection was lost");
    co_await wait(s, stream_socket::wait_read);
  }
}

/// Frames go on without the session: there are keys, and both sides do not want encryption.
void leave(const greeted_connection& c, const tls_ptr& session, encryption frames) {
  if (!session || frames == encryption::on) return;
  c.reader.use(nullptr);
  c.sender.use(nullptr);
}

}  // namespace

asio::awaitable<server_info> greet(greeted_connection c, const hello_info& me, const key_ptr& key) {
  peer_proof proof{key != nullptr, {}, same_machine(c.socket)};
  tls_ptr session;
  if (key) {
    session = co_await prove(c, tls_session::side::client, key);
    proof.given = key->holder();
  }
  client_handshake hands(me, std::move(proof));
  take(hands.hello(), c.sender);
  const frame_header h = co_await c.reader.next();
  take({{}, hands.finish(h, c.reader.body())}, c.sender);
  leave(c, session, hands.server().frames);
  co_return hands.server();
}

asio::awaitable<void> greet(greeted_connection c, const server_info& me, const key_ptr& key, revocations_ptr revoked,
                            std::function<void(const greeted_peer&)> let_in) {
  peer_proof proof{key != nullptr, {}, same_machine(c.socket)};
  tls_ptr session;
  if (co_await begins_with_tls(c.socket)) {
    if (!key) {
      // The bytes that have come are taken from the socket: closing it would else overtake the answer.
      std::array<char, 4096> some{};
      (void)::recv(c.socket.native_handle(), some.data(), some.size(), MSG_DONTWAIT);
      take(no_key_here(), c.sender);
    }
    session = co_await prove(c, tls_session::side::server, key);
    proof.given = session->peer();
    proof.revoked = revoked && proof.given && revoked->cover(*proof.given);
  }
  server_handshake hands(me, std::move(proof));
  const frame_header h = co_await c.reader.next();
  handshake_step welcome = hands.welcome(h, c.reader.body());
  try {
    if (!welcome.refused) let_in({hands.peer(), hands.identity()});
  } catch (const connection_refused& e) {
    welcome = not_welcome({e.code(), e.what()});
  }
  take(welcome, c.sender);
  leave(c, session, me.frames);
}

}  // namespace ooc::wire
