#include "metad/session.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "daemon/admission.hpp"
#include "daemon/await_grant.hpp"
#include "storage/wire/address.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::metad {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr wire::frame_limits call_limits{.body = 2 << 20, .payload = 0};
constexpr auto handshake_limit = 10s;
constexpr std::uint64_t large_answer = 16 << 10;
constexpr std::uint32_t small = 4 << 10;  // bytes of a call that its connection has memory for

/// Refusals for want of a right are worth a line, names that do not exist are not.
spdlog::level::level_enum level_of(const std::exception& e) {
  const auto* usage = dynamic_cast<const usage_error*>(&e);
  if (usage == nullptr) return spdlog::level::err;
  return usage->code() == std::errc::permission_denied ? spdlog::level::warn : spdlog::level::debug;
}

}  // namespace

waiting_frame::waiting_frame(wire::frame_kind k, std::string_view b) : kind(k), body(b) {
  if (kind != frame_kind::metadata) return;
  try {
    call = wire::decode_call(body);
    using namespace storage::calls;
    if (std::holds_alternative<list>(call->what) || std::holds_alternative<ids>(call->what)) room = 4 << 20;
  } catch (const error&) {
    refused = std::current_exception();
  }
}

session::session(session_host& host, std::shared_ptr<wire::stream_socket> socket, std::uint64_t number)
    : host_(host),
      socket_(std::move(socket)),
      sender_(std::make_shared<wire::frame_sender>(socket_)),
      reader_(socket_, wire::handshake_limits),
      number_(number),
      peer_(wire::peer_text(*socket_)),
      taken_(socket_->get_executor(), std::chrono::steady_clock::time_point::max()) {}

void session::close() {
  closed_ = true;
  place_ = {};
  sender_->close();
  taken_.cancel();
}

std::string session::fault(std::chrono::steady_clock::time_point now) {
  if (closed_) return {};
  if (!welcomed_) return now - accepted_ > handshake_limit ? "has not said who it is for 10 s" : "";
  const bool to_be_taken = sender_->stuck_since() != std::chrono::steady_clock::time_point::max();
  if (going_.too_slow(now, to_be_taken, sender_->taken())) return "has taken less than 16 KiB/s of its answer for 10 s";
  if (coming_.too_slow(now, reader_.inside() && !waiting_, reader_.received()))
    return "has sent less than 16 KiB/s of a call for 10 s";
  return {};
}

asio::awaitable<std::string> session::run() {
  const auto self = shared_from_this();
  std::string why;
  try {
    co_await shake_hands();
    reader_.set_limits(call_limits);
    while (!closed_) {
      const frame_header h = co_await reader_.next_header();
      heard_ = std::chrono::steady_clock::now();
      busy_ = true;
      if (!closed_) co_await serve(h);
      busy_ = false;
      reader_.drop_body();
    }
  } catch (const wire::connection_error& e) {
    if (e.code() != std::errc::connection_reset) why = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  }
  close();
  co_return why;
}

asio::awaitable<void> session::shake_hands() {
  const wire::server_info me = host_.who_am_i();
  const std::function<void(const wire::greeted_peer&)> let_in = [&](const wire::greeted_peer& peer) {
    client_ = peer.says;
    holder_ = wire::mark_of(peer.identity);
    identity_ = peer.identity;
    servers::check_user(*socket_, peer);
    who_ = servers::number_of(*socket_, client_, host_.key() != nullptr);
    place_ = host_.welcome(*this);
    welcomed_ = true;
  };
  co_await wire::greet({*socket_, reader_, *sender_}, me, host_.key(), host_.revoked(), let_in);
}

asio::awaitable<servers::fair_share::claim> session::take_memory(std::uint64_t bytes) {
  waiting_ = true;
  const auto ask = [this, bytes](auto go) { host_.memory()->take(who_, bytes, std::move(go)); };
  const auto gone = [this] { return closed_; };
  servers::fair_share::claim got =
      co_await servers::await_grant<servers::fair_share::claim>(socket_->get_executor(), ask, gone);
  waiting_ = false;
  co_return got;
}

asio::awaitable<void> session::serve(const frame_header& h) {
  // A call is read into as much again.
  servers::fair_share::claim memory;
  if (h.body_bytes > small) memory = co_await take_memory(3 * std::uint64_t{h.body_bytes});
  if (closed_) co_return;
  co_await reader_.receive_body(h);
  const waiting_frame f(h.kind, reader_.body());
  if (f.room > memory.amount()) {
    memory = {};
    memory = co_await take_memory(f.room + 3 * std::uint64_t{h.body_bytes});
  }
  waiting_ = true;
  const auto ask = [this](auto go) { host_.take_turn(who_, std::move(go)); };
  const auto gone = [this] { return closed_; };
  co_await servers::await_grant<bool>(socket_->get_executor(), ask, gone);
  waiting_ = false;
  if (!closed_) co_await answer(h.id, f, std::move(memory));
}

asio::awaitable<void> session::answer(std::uint64_t id, const waiting_frame& f, servers::fair_share::claim memory) {
  frame_header reply;
  reply.kind = frame_kind::reply;
  reply.flags = frame_header::last;
  reply.id = id;
  reply.incarnation = host_.who_am_i().incarnation;
  std::string body;
  try {
    body = host_.answer(*this, f);
  } catch (const std::exception& e) {
    reply.flags |= frame_header::failed;
    body = wire::encode_failure(e);
    spdlog::log(level_of(e), "{} ({}), {}: {}", peer_, client_.name, wire::kind_name(f.kind), e.what());
  }
  const auto self = shared_from_this();
  sender_->send({wire::encode_frame(reply, body), {}, [self](bool) {
                   asio::post(self->socket_->get_executor(), [self] { self->taken_.cancel(); });
                 }});
  // An entry may have long attributes, which nobody knew before the answer was there.
  if (const auto left = sender_->queued_bytes(); left > large_answer && left > memory.amount()) {
    memory = {};
    memory = host_.memory()->try_take(who_, left);
    if (!memory)
      throw wire::connection_error(std::make_error_code(std::errc::not_enough_memory),
                                   "it has not taken its answer, and there is no memory to keep it in (--memory)");
  }
  while (!closed_ && sender_->queued_bytes() != 0) {
    boost::system::error_code ignored;
    co_await taken_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace ooc::metad
