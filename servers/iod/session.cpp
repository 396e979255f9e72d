#include "iod/session.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "iod/read_request.hpp"
#include "storage/wire/address.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/greeting.hpp"

namespace ooc::iod {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr std::uint32_t max_payload = storage::io_part::max_bytes + (1 << 16);
constexpr auto handshake_limit = 10s;
constexpr auto silence_limit = 30s;

[[noreturn]] void broken(const std::string& why) {
  throw wire::connection_error(std::make_error_code(std::errc::protocol_error), why);
}

std::uint32_t rights_for(frame_kind kind) {
  switch (kind) {
    case frame_kind::create:
      return wire::right_make;
    case frame_kind::remove:
      return wire::right_remove;
    case frame_kind::verify:
      return wire::right_read;
    case frame_kind::resize:
      return wire::right_resize;
    default:
      return wire::right_write;
  }
}

}  // namespace

session::session(session_host& host, std::shared_ptr<wire::stream_socket> socket)
    : socket_(std::move(socket)),
      with_(std::make_shared<conversation>(host, socket_)),
      reader_(socket_, wire::handshake_limits),
      writes_(std::make_shared<incoming_writes>(with_, socket_, reader_)),
      peer_(wire::peer_text(*socket_)) {}

asio::awaitable<std::string> session::run() {
  const auto self = shared_from_this();
  std::string why;
  try {
    co_await shake_hands();
    welcomed_ = true;
    reader_.set_limits({16 << 20, max_payload});
    for (;;) {
      co_await wait_for_memory();
      const frame_header h = co_await reader_.next();
      if (with_->overfull())
        broken("more requests between the parts of a write than there is room for");
      co_await serve(h);
    }
  } catch (const wire::connection_error& e) {
    if (e.code() != std::errc::connection_reset) why = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  }
  close();
  writes_->abandon();
  with_->active().no_more();
  co_return why;
}

asio::awaitable<void> session::shake_hands() {
  wire::server_handshake hands(with_->host().who_am_i(), with_->host().key(),
                               wire::same_machine(*socket_));
  co_await wire::greet(hands, reader_, with_->sender());
  with_->set_who(hands.peer());
}

asio::awaitable<void> session::wait_for_memory() {
  if (!with_->full()) co_return;
  asio::steady_timer soon(co_await asio::this_coro::executor);
  while (with_->full() && !closed()) {
    soon.expires_after(5ms);
    co_await soon.async_wait(asio::use_awaitable);
  }
}

std::string session::look_after(clock::time_point now, std::chrono::seconds patience) {
  if (closed()) return {};
  if (!welcomed_ && now - accepted_ > handshake_limit) {
    close();
    return "it did not say who it is within 10 s";
  }
  const auto stuck = with_->sender().stuck_since();
  if (stuck != clock::time_point::max() && now - stuck > patience) {
    close();
    return "it has not taken what it asked for within " + std::to_string(patience.count()) + " s";
  }
  // Where its bytes wait for room here, the client is not to blame.
  const std::uint64_t received = reader_.received();
  const bool full = with_->full();
  if (received != std::exchange(received_, received) || writes_->waiting() || full)
    receiving_ = now;
  if ((reader_.inside() || with_->active().coming()) && now - receiving_ > silence_limit) {
    close();
    return "it stopped in the middle of a request for 30 s";
  }
  for (const std::uint64_t id : with_->active().busy(now, receiving_)) say_busy(id);
  if (!full || now - spoken_ < active_requests::still_busy) return {};
  spoken_ = now;
  say_busy(0);
  return {};
}

/// With a request; with the connection as a whole where the id is 0.
void session::say_busy(std::uint64_t id) {
  with_->sender().send({wire::encode_frame(with_->reply_header(id), {}), {}, {}});
}

asio::awaitable<void> session::serve(const frame_header& h) {
  switch (h.kind) {
    case frame_kind::write:
      reader_.limit_window(with_->host().connections() <= wire::receive_window::most_at_once);
      [[fallthrough]];
    case frame_kind::more:
      co_return co_await writes_->receive(h);
    case frame_kind::read:
    case frame_kind::create:
    case frame_kind::resize:
    case frame_kind::remove:
    case frame_kind::sync:
    case frame_kind::verify:
    case frame_kind::list:
    case frame_kind::stats:
    case frame_kind::fence:
    case frame_kind::ping:
      if (h.payload_bytes != 0) broken("a " + wire::kind_name(h.kind) + " with a payload");
      if (h.kind == frame_kind::read)
        read_request::start(with_, h, reader_.body());
      else
        start_other(h);
      break;
    default:
      broken("a " + wire::kind_name(h.kind) + " is nothing for an I/O server");
  }
}

void session::start_other(const frame_header& h) {
  with_->active().begin(h.id);
  try {
    switch (h.kind) {
      case frame_kind::ping:
        return with_->reply(h.id, {});
      case frame_kind::stats:
        return with_->reply(h.id, {}, wire::encode(with_->host().statistics()));
      case frame_kind::fence:
        return start_fence(h.id, wire::decode_fence(reader_.body()));
      case frame_kind::list:
        return with_->host().node().list(
            [with = with_, id = h.id](const failure& f, std::vector<storage::file_id> ids) {
              with->reply(id, f, wire::encode_ids(ids));
            });
      default:
        start_on_share(h, wire::decode_io_request(reader_.body()));
    }
  } catch (const error& e) {
    with_->reply(h.id, {e.code(), e.what()});
  } catch (const std::exception& e) {
    with_->reply(h.id, with_->unexpected(e));
  }
}

void session::start_fence(std::uint64_t id, const std::vector<std::uint64_t>& connections) {
  if (std::find(connections.begin(), connections.end(), client().connection) != connections.end())
    return with_->reply(id, {errc::invalid_request, "a fence that names its own connection"});
  with_->host().fence(client().client, connections, [with = with_, id] { with->reply(id, {}); });
}

void session::start_on_share(const frame_header& h, wire::io_request r) {
  auto& node = with_->host().node();
  const auto answer = [with = with_, id = h.id](const failure& f) { with->reply(id, f); };
  const std::uint32_t rights = rights_for(h.kind);
  if (h.kind == frame_kind::remove) {  // only the id of the file counts
    if (const failure f = with_->host().check_ticket(r.ticket, r.file, rights))
      return answer(f);
    return node.remove(r.file, answer);
  }
  if (const failure f = with_->check(r, rights)) return answer(f);
  switch (h.kind) {
    case frame_kind::create:
      return node.create(r.file, r.turn, answer);
    case frame_kind::resize:
      return node.resize(r.file, r.turn, r.old_size, answer);
    case frame_kind::sync:
      return node.sync(r.file, r.turn, answer);
    default:
      return node.verify(
          r.file, r.turn,
          [with = with_, id = h.id](const failure& f, const storage::verify_report& report) {
            with->reply(id, f, wire::encode(report));
          });
  }
}

}  // namespace ooc::iod
