#include "iod/session.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <optional>
#include <utility>

#include "daemon/admission.hpp"
#include "daemon/await_grant.hpp"
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

failure too_long(storage::io_kind kind, std::size_t bytes) {
  return {std::make_error_code(std::errc::message_size),
          "the answer has " + std::to_string(bytes) + " bytes, and a message at most " +
              std::to_string(wire::max_answer_body) +
              (kind == storage::io_kind::list ? ": the node has too many stripe objects to be listed; with more nodes "
                                                "(`ooc up --nodes +N`, `ooc restripe`) each has fewer"
                                              : ": ask about a smaller file, or copy the whole of this one")};
}

}  // namespace

session::session(session_host& host, std::shared_ptr<wire::stream_socket> socket, std::chrono::milliseconds window)
    : socket_(std::move(socket)),
      with_(std::make_shared<request_context>(host, socket_)),
      reader_(socket_, wire::handshake_limits),
      writes_(std::make_shared<incoming_writes>(with_, socket_, reader_)),
      peer_(wire::peer_text(*socket_)),
      window_(window) {}

asio::awaitable<std::string> session::run() {
  const auto self = shared_from_this();
  std::string why;
  try {
    co_await shake_hands();
    reader_.set_limits({wire::max_request_body, max_payload});
    for (;;) {
      const frame_header h = co_await reader_.next_header();
      heard_ = clock::now();
      co_await serve(h);
      reader_.drop_body();
      // A connection whose frames never end would keep this thread to itself.
      co_await asio::post(socket_->get_executor(), asio::use_awaitable);
    }
  } catch (const wire::connection_error& e) {
    if (e.code() != std::errc::connection_reset) why = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  }
  close();
  with_->end();
  writes_->abandon();
  place_ = {};
  with_->active().no_more();
  co_return why;
}

asio::awaitable<void> session::shake_hands() {
  const wire::key_ptr key = with_->host().key();
  const wire::server_info me = with_->host().who_am_i();
  // A client that has the welcome may lose the connection, and fence it, before this thread goes on.
  const std::function<void(const wire::greeted_peer&)> let_in = [&](const wire::greeted_peer& peer) {
    servers::check_user(*socket_, peer);
    const auto number = servers::number_of(*socket_, peer.says, key != nullptr);
    with_->set_who(peer, number);
    place_ = servers::welcome_to(*with_->host().places(), number);
    welcomed_ = true;
  };
  co_await wire::greet({*socket_, reader_, with_->sender()}, me, key, with_->host().revoked(), let_in);
}

// For the description of a request.  Where parts of a write are to come, which must be read on for its
// own memory to come back, there is no waiting: an empty claim is none.
asio::awaitable<fair_share::claim> session::take_memory(std::uint64_t bytes) {
  const auto with = with_;
  if (with->active().coming()) co_return with->host().descriptions()->try_take(with->number(), bytes);
  waiting_ = true;
  const auto ask = [with, bytes](auto go) { with->host().descriptions()->take(with->number(), bytes, std::move(go)); };
  const auto gone = [with] { return with->sender().closed(); };
  fair_share::claim got = co_await servers::await_grant<fair_share::claim>(socket_->get_executor(), ask, gone);
  waiting_ = false;
  if (gone()) broken("the connection was closed");
  co_return got;
}

std::string session::look_after(clock::time_point now, bool hurry) {
  if (closed()) return {};
  if (!welcomed_) {
    if (now - accepted_ <= handshake_limit) return {};
    close();
    return "it did not say who it is within 10 s";
  }
  const auto window = hurry ? window_ / 2 : window_;
  const auto drop = [&](const std::string& what) {
    close();
    return "it has " + what + " less than " + std::to_string(servers::transfer_watch::least_rate >> 10) +
           " KiB/s for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(window).count()) + " s";
  };
  const bool to_be_taken = with_->sender().stuck_since() != clock::time_point::max();
  if (going_.too_slow(now, to_be_taken, with_->sender().taken(), window)) return drop("taken of what it asked for");
  // Where its bytes wait for room here, the client is not to blame.
  const bool waits = waiting_ || writes_->waiting();
  const std::uint64_t received = reader_.received();
  if (received != std::exchange(received_, received) || waits) receiving_ = now;
  const bool to_come = (reader_.inside() || with_->active().coming()) && !waits;
  if (coming_.too_slow(now, to_come, received, window)) return drop("sent of a request");
  for (const std::uint64_t id : with_->active().busy(now, receiving_)) say_busy(id);
  if (!waiting_ || now - spoken_ < requests_in_flight::still_busy) return {};
  spoken_ = now;
  say_busy(0);
  return {};
}

/// With a request; with the connection as a whole where the id is 0.
void session::say_busy(std::uint64_t id) {
  with_->sender().send({wire::encode_frame(with_->reply_header(id), {}), {}, {}});
}

asio::awaitable<void> session::serve(const frame_header& h) {
  if (h.kind == frame_kind::more) {
    co_await reader_.receive_body(h);
    co_return co_await writes_->receive_more(h);
  }
  if (wire::served(h.kind) == nullptr && h.kind != frame_kind::stats && h.kind != frame_kind::fence)
    broken("a " + wire::kind_name(h.kind) + " is nothing for an I/O server");
  if (h.kind == frame_kind::write)
    reader_.limit_window(with_->host().connections() <= wire::receive_window::most_at_once);
  else if (h.payload_bytes != 0)
    broken("a " + wire::kind_name(h.kind) + " with a payload");
  // The ids of all stripe objects may be many.
  const std::uint64_t bytes =
      h.kind == frame_kind::list ? request_context::most_memory(h) : request_context::memory_for(h);
  fair_share::claim memory = co_await take_memory(bytes);
  co_await reader_.receive_body(h);
  if (h.kind == frame_kind::read || h.kind == frame_kind::write)
    co_return co_await start_transfer(h, std::move(memory));
  with_->active().begin(h.id, std::move(memory));
  start_other(h);
}

asio::awaitable<void> session::start_transfer(const frame_header& h, fair_share::claim memory) {
  const bool writes = h.kind == frame_kind::write;
  const std::uint64_t most = request_context::most_memory(h);
  described_request r;
  failure refused;
  try {
    const auto rights = writes ? wire::right_write : wire::right_read;
    std::optional<described_request> described;
    if (memory) described = with_->describe(reader_.body(), rights, memory, most);
    if (!described) {
      // The memory that this request holds goes back first: else requests that wait for more could wait for each other.
      memory = {};
      memory = co_await take_memory(most);
      if (memory) described = with_->describe(reader_.body(), rights, memory, most);
    }
    if (described)
      r = std::move(*described);
    else
      refused = {std::make_error_code(std::errc::not_enough_memory),
                 "the descriptions of this client's requests take the memory that there is for them; "
                 "send a write's parts without requests in between"};
  } catch (const wire::connection_error&) {
    throw;
  } catch (const error& e) {
    refused = {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    refused = too_many_regions();
  }
  with_->active().begin(h.id, std::move(memory), writes);
  if (writes) co_return co_await writes_->begin(h, std::move(r), refused);
  if (refused) co_return with_->reply(h.id, refused);
  try {
    read_request::start(with_, h, std::move(r));
  } catch (const std::exception& e) {
    with_->reply(h.id, with_->unexpected(e));
  }
}

void session::start_other(const frame_header& h) {
  try {
    if (h.kind == frame_kind::stats) return with_->reply(h.id, {}, wire::encode(with_->host().statistics()));
    if (h.kind == frame_kind::fence) return start_fence(h.id, wire::decode_fence(reader_.body()));
    start_call(h.id, *wire::served(h.kind));
  } catch (const error& e) {
    with_->reply(h.id, {e.code(), e.what()});
  } catch (const std::exception& e) {
    with_->reply(h.id, with_->unexpected(e));
  }
}

void session::start_fence(std::uint64_t id, const std::vector<std::uint64_t>& connections) {
  if (std::find(connections.begin(), connections.end(), client().connection) != connections.end())
    return with_->reply(id, {errc::invalid_request, "a fence that names its own connection"});
  with_->active().only_waits(id);  // nobody asks for its answer once this connection has ended
  with_->host().fence(client().client, connections, [with = with_, id] { with->reply(id, {}); });
}

void session::start_call(std::uint64_t id, const wire::served_call& c) {
  storage::node_call call;
  if (c.rights != 0) {
    wire::io_request r = wire::decode_io_request(reader_.body());
    const bool removes = c.call == storage::io_kind::remove;
    failure refused;
    for (const auto right :
         {wire::right_make, wire::right_remove, wire::right_resize, wire::right_write, wire::right_read}) {
      if ((c.rights & right) == 0) continue;
      refused =
          removes ? with_->host().check_capability(r.capability, r.file, right, with_->user()) : with_->check(r, right);
      if (!refused) break;
    }
    if (!refused && c.call == storage::io_kind::clone) refused = with_->check_into(r);
    if (refused) return with_->reply(id, refused);
    if (removes) r.stripe_index = 0;  // only the id of the file counts
    call = std::move(r);
  }
  call.kind = c.call;
  call.answer = std::make_shared<storage::node_answer>();
  with_->node()->answer(call, [with = with_, id, kind = call.kind, told = call.answer](const failure& f) {
    const std::string body = wire::encode_answer(kind, *told);
    with->reply(id, f || body.size() <= wire::max_answer_body ? f : too_long(kind, body.size()), body);
  });
}

}  // namespace ooc::iod
