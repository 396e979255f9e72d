#include "iod/session.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "storage/quick_read.hpp"
#include "storage/wire/address.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/greeting.hpp"

namespace ooc::iod {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using storage::io_part;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr std::uint32_t max_payload = io_part::max_bytes + (1 << 16);
constexpr std::uint64_t max_holding = 4 * io_part::max_bytes;  // received, not yet written
constexpr std::uint64_t max_unsent = 2 * io_part::max_bytes;   // read, not yet taken by the client
constexpr auto handshake_limit = 10s;
constexpr auto stuck_limit = 30s;
constexpr auto still_busy = 1s;  // a client is told this often that its request is being served

[[noreturn]] void broken(const std::string& why) {
  throw wire::connection_error(std::make_error_code(std::errc::protocol_error), why);
}

}  // namespace

/// A read on its way to the client, a part at a time.
struct session::read_job {
  std::uint64_t id = 0;
  wire::io_request what;
  std::optional<storage::part_cutter> parts;
  storage::checking who = storage::checking::by_caller;
  io_part part;  // the one in hand, packed
  std::vector<std::uint32_t> sums;
  buffer_pool::buffer bytes;
};

/// A write whose parts are coming and being written.
struct session::write_job {
  std::uint64_t id = 0;
  wire::io_request what;
  std::optional<storage::part_cutter> parts;
  bool refused = false;  // what still comes of it is skipped
  failure outcome;       // guarded by the session's mutex, as are the rest
  std::uint64_t running = 0;
  bool complete = false;  // every part has come
  bool replied = false;
};

session::session(session_host& host, std::shared_ptr<wire::stream_socket> socket)
    : host_(host),
      socket_(std::move(socket)),
      sender_(std::make_shared<wire::frame_sender>(socket_)),
      reader_(*socket_, wire::handshake_limits),
      peer_(wire::peer_text(*socket_)),
      room_(socket_->get_executor(), clock::time_point::max()) {}

asio::awaitable<std::string> session::run() {
  const auto self = shared_from_this();
  std::string why;
  try {
    co_await shake_hands();
    welcomed_ = true;
    reader_.set_limits({16 << 20, max_payload});
    for (;;) {
      const frame_header h = co_await reader_.next();
      co_await serve(h);
    }
  } catch (const wire::connection_error& e) {
    if (e.code() != std::errc::connection_reset) why = e.what();
  } catch (const std::exception& e) {
    why = e.what();
  }
  sender_->close();
  // Writes that will never be complete.
  for (auto& [id, w] : std::exchange(writes_, {})) {
    {
      const std::lock_guard lock(mutex_);
      w->complete = true;
    }
    end_write(w);
  }
  std::vector<std::function<void()>> over;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (active_.empty()) over = std::exchange(over_, {});
  }
  for (const auto& f : over) f();
  co_return why;
}

asio::awaitable<void> session::shake_hands() {
  wire::server_handshake hands(host_.who_am_i(), host_.key(), wire::same_machine(*socket_));
  co_await wire::greet(hands, reader_, *sender_);
  client_ = hands.peer();
  queue_name_.assign(client_.client.begin(), client_.client.end());
}

void session::when_over(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_ || !active_.empty()) {
      over_.push_back(std::move(done));
      return;
    }
  }
  done();
}

void session::begin(std::uint64_t id, bool coming) {
  const std::lock_guard lock(mutex_);
  if (!active_.emplace(id, active_request{clock::now(), coming}).second)
    broken("request " + std::to_string(id) + " was made twice");
}

// With the mutex held: the client hears of the request some other way.
void session::touch(std::uint64_t id) {
  if (const auto a = active_.find(id); a != active_.end()) a->second.spoken = clock::now();
}

void session::end(std::uint64_t id) {
  std::vector<std::function<void()>> over;
  {
    const std::lock_guard lock(mutex_);
    active_.erase(id);
    if (ended_ && active_.empty()) over = std::exchange(over_, {});
  }
  for (const auto& f : over) f();
}

std::string session::look_after(clock::time_point now) {
  if (sender_->closed()) return {};
  if (!welcomed_ && now - accepted_ > handshake_limit) {
    sender_->close();
    return "it did not say who it is within 10 s";
  }
  const auto stuck = sender_->stuck_since();
  if (stuck != clock::time_point::max() && now - stuck > stuck_limit) {
    sender_->close();
    return "it has not taken what it asked for within 30 s";
  }
  std::vector<std::uint64_t> busy;
  bool coming = reader_.inside();
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t received = reader_.received();
    // Where its bytes wait for room here, the client is not to blame.
    if (received != received_ || waiting_) receiving_ = now;
    received_ = received;
    for (auto& [id, r] : active_) {
      coming = coming || r.coming;
      if (now - r.spoken < still_busy || (r.coming && now - receiving_ > still_busy)) continue;
      r.spoken = now;
      busy.push_back(id);
    }
  }
  if (coming && now - receiving_ > stuck_limit) {
    sender_->close();
    return "it stopped in the middle of a request for 30 s";
  }
  for (const std::uint64_t id : busy)
    sender_->send({wire::encode_frame(reply_header(id), {}), {}, {}});
  return {};
}

frame_header session::reply_header(std::uint64_t id) const {
  frame_header h;
  h.kind = frame_kind::reply;
  h.id = id;
  h.incarnation = host_.who_am_i().incarnation;
  return h;
}

void session::reply(std::uint64_t id, const failure& f, const std::string& body) {
  frame_header h = reply_header(id);
  h.flags = frame_header::last;
  if (f) h.flags |= frame_header::failed;
  sender_->send({wire::encode_frame(h, f ? wire::encode(f) : body), {}, {}});
  end(id);
}

failure session::check(const wire::io_request& r, std::uint32_t rights) const {
  const auto& f = *r.file;
  if (f.striping.nn == 0 || f.striping.sf == 0 || r.turn >= f.striping.nn)
    return {errc::invalid_request, "'" + f.name + "': no such turn, or a striping without nodes"};
  if (r.wanted->file_end() > f.size)
    return {errc::invalid_request, "'" + f.name + "': the request ends at byte " +
                                       std::to_string(r.wanted->file_end()) +
                                       ", the file at byte " + std::to_string(f.size)};
  if (failure refused = host_.check_ticket(r.ticket, f.id, rights)) {
    refused.what = "'" + f.name + "': " + refused.what;
    return refused;
  }
  return {};
}

asio::awaitable<void> session::serve(const frame_header& h) {
  switch (h.kind) {
    case frame_kind::read:
      if (h.payload_bytes != 0) broken("a read with a payload");
      start_read(h);
      break;
    case frame_kind::write: {
      const auto w = start_write(h);
      co_await receive_part(h, w);
      break;
    }
    case frame_kind::more: {
      const auto w = writes_.find(h.id);
      if (w == writes_.end()) broken("a part of no write");
      co_await receive_part(h, w->second);
      break;
    }
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
      start_other(h);
      break;
    default:
      broken("a " + wire::kind_name(h.kind) + " is nothing for an I/O server");
  }
}

// Reading.

void session::start_read(const frame_header& h) {
  begin(h.id);
  const auto r = std::make_shared<read_job>();
  r->id = h.id;
  std::vector<storage::piece> pieces;
  try {
    r->what = wire::decode_io_request(reader_.body());
    if (const failure f = check(r->what, wire::right_read)) return reply(h.id, f);
    share_pieces(*r->what.wanted, r->what.file->striping, r->what.turn, pieces);
  } catch (const error& e) {
    return reply(h.id, {e.code(), e.what()});
  }
  if (h.has(frame_header::checked)) r->who = storage::checking::here;
  if (pieces.empty()) return reply(h.id, {});
  r->parts.emplace(std::move(pieces));
  r->part = storage::packed(r->parts->next());
  r->sums.resize(r->part.sums());
  if (r->parts->at_end() && r->who == storage::checking::by_caller && send_quickly(*r)) return;
  queue_read(r);
}

// A small read that needs no disk: answered at once, before its turn, as it takes nobody's time.
bool session::send_quickly(read_job& r) {
  if (r.part.bytes > storage::max_quick_bytes) return false;
  frame_header h = reply_header(r.id);
  h.sums = r.part.sums();
  h.flags = frame_header::last;
  const auto wire_bytes = static_cast<std::uint32_t>(r.part.wire_bytes());
  std::string answer = wire::encode_frame(h, {}, wire_bytes);
  const std::size_t sums_at = answer.size();
  const std::size_t data_at = sums_at + r.sums.size() * 4;
  answer.resize(sums_at + wire_bytes);
  if (!host_.node().read_quickly(*r.what.file, r.part,
                                 reinterpret_cast<std::byte*>(answer.data() + data_at),
                                 r.sums.data()))
    return false;
  std::memcpy(answer.data() + sums_at, r.sums.data(), r.sums.size() * 4);
  sender_->send({std::move(answer), {}, {}});
  end(r.id);
  return true;
}

void session::continue_read(std::shared_ptr<read_job> r) {
  r->part = storage::packed(r->parts->next());
  r->sums.resize(r->part.sums());
  queue_read(std::move(r));
}

void session::queue_read(std::shared_ptr<read_job> r) {
  const fair_queue::place where{r->what.file->id, r->part.pieces.front().node_offset};
  const std::uint64_t cost = r->part.bytes;
  host_.queue().add(
      queue_name_, where, cost, [self = shared_from_this(), r](std::function<void()> finished) {
        if (self->sender_->closed()) {
          self->end(r->id);
          return finished();
        }
        self->host_.buffers()->take(r->part.bytes, [self, r, finished](buffer_pool::buffer b) {
          r->bytes = std::move(b);
          self->host_.node().read_part(r->what.file, r->what.turn, r->part, r->bytes.data(),
                                       r->sums.data(), r->who,
                                       [self, r, finished](const failure& f) {
                                         self->send_part(r, f);
                                         finished();
                                       });
        });
      });
}

void session::send_part(std::shared_ptr<read_job> r, const failure& f) {
  if (f) {
    r->bytes = {};
    return reply(r->id, f);
  }
  const bool last = r->parts->at_end();
  frame_header h = reply_header(r->id);
  h.sums = r->part.sums();
  if (last) h.flags = frame_header::last;
  const std::uint64_t bytes = r->part.bytes;
  wire::frame_sender::message m;
  m.head = wire::encode_frame(h, {}, static_cast<std::uint32_t>(r->part.wire_bytes()));
  m.head.append(reinterpret_cast<const char*>(r->sums.data()), r->sums.size() * 4);
  // The buffer goes with the message; the next part is read while this one is being sent, unless
  // too much waits already.
  const auto held = std::make_shared<buffer_pool::buffer>(std::move(r->bytes));
  m.payload.push_back({held->data(), bytes});
  const bool go_on = !last && sender_->queued_bytes() + bytes <= max_unsent;
  m.released = [self = shared_from_this(), r, held, last, go_on](bool) mutable {
    *held = {};
    if (last)
      self->end(r->id);
    else if (!go_on)
      self->continue_read(r);
  };
  {
    const std::lock_guard lock(mutex_);
    touch(r->id);
  }
  sender_->send(std::move(m));
  if (go_on) continue_read(std::move(r));
}

// Writing.

std::shared_ptr<session::write_job> session::start_write(const frame_header& h) {
  begin(h.id, true);
  const auto w = std::make_shared<write_job>();
  w->id = h.id;
  std::vector<storage::piece> pieces;
  try {
    w->what = wire::decode_io_request(reader_.body());
    w->outcome = check(w->what, wire::right_write);
    if (!w->outcome) share_pieces(*w->what.wanted, w->what.file->striping, w->what.turn, pieces);
    if (overlap(pieces))
      w->outcome = {errc::invalid_request,
                    "'" + w->what.file->name + "': pieces of the request overlap in the file"};
  } catch (const error& e) {
    w->outcome = {e.code(), e.what()};
  }
  w->refused = static_cast<bool>(w->outcome);
  w->parts.emplace(std::move(pieces));
  return writes_[h.id] = w;
}

void session::wake() {
  asio::post(socket_->get_executor(), [self = shared_from_this()] { self->room_.cancel(); });
}

// Wake-ups run on the same strand, so none is lost between the look and the wait.
template <class Condition>
asio::awaitable<void> session::wait_for(Condition condition) {
  while (!condition()) {
    room_.expires_after(1s);
    boost::system::error_code ec;
    co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    if (sender_->closed()) broken("the connection was closed");
  }
}

// A buffer, once this client has not too many already.
asio::awaitable<std::shared_ptr<buffer_pool::buffer>> session::take_buffer(std::size_t bytes) {
  waiting_ = true;
  co_await wait_for([&] {
    const std::lock_guard lock(mutex_);
    return holding_ < max_holding;
  });
  struct place {
    std::mutex mutex;
    std::shared_ptr<buffer_pool::buffer> buffer;
  };
  const auto p = std::make_shared<place>();
  host_.buffers()->take(bytes, [p, self = shared_from_this()](buffer_pool::buffer b) {
    {
      const std::lock_guard lock(p->mutex);
      p->buffer = std::make_shared<buffer_pool::buffer>(std::move(b));
    }
    self->wake();
  });
  co_await wait_for([&] {
    const std::lock_guard lock(p->mutex);
    return p->buffer != nullptr;
  });
  waiting_ = false;
  const std::lock_guard lock(mutex_);
  holding_ += bytes;
  co_return p->buffer;
}

asio::awaitable<void> session::receive_part(const frame_header& h, std::shared_ptr<write_job> w) {
  const bool last = h.has(frame_header::last);
  if (w->refused) {
    co_await reader_.skip(h.payload_bytes);
  } else {
    const io_part part = storage::packed(w->parts->next());
    if (part.sums() != h.sums || part.wire_bytes() != h.payload_bytes || w->parts->at_end() != last)
      broken("a part of another size than the request has");
    if (part.bytes != 0) {
      const auto buffer = co_await take_buffer(part.bytes);
      const auto sums = std::make_shared<std::vector<std::uint32_t>>(part.sums());
      std::array<iovec, 2> places{iovec{sums->data(), sums->size() * 4},
                                  iovec{buffer->data(), part.bytes}};
      co_await reader_.payload(places);
      write_part(w, part, buffer, sums);
    }
  }
  if (!last) co_return;
  writes_.erase(h.id);
  {
    const std::lock_guard lock(mutex_);
    w->complete = true;
    active_[h.id].coming = false;
  }
  end_write(w);
}

void session::write_part(const std::shared_ptr<write_job>& w, const io_part& part,
                         std::shared_ptr<buffer_pool::buffer> bytes,
                         std::shared_ptr<std::vector<std::uint32_t>> sums) {
  {
    const std::lock_guard lock(mutex_);
    ++w->running;
  }
  const fair_queue::place where{w->what.file->id, part.pieces.front().node_offset};
  host_.queue().add(
      queue_name_, where, part.bytes,
      [self = shared_from_this(), w, part, bytes, sums](std::function<void()> finished) {
        self->host_.node().write_part(
            w->what.file, w->what.turn, part, bytes->data(), sums->data(),
            [self, w, n = part.bytes, bytes, sums, finished](const failure& f) {
              *bytes = {};
              {
                const std::lock_guard lock(self->mutex_);
                self->holding_ -= n;
                --w->running;
                if (f && !w->outcome) w->outcome = f;
              }
              self->wake();
              self->end_write(w);
              finished();
            });
      });
}

// Answers a write when all its parts have come and have been written.
void session::end_write(const std::shared_ptr<write_job>& w) {
  failure outcome;
  {
    const std::lock_guard lock(mutex_);
    if (!w->complete || w->running != 0 || w->replied) return;
    w->replied = true;
    outcome = w->outcome;
  }
  reply(w->id, outcome);
}

// Everything else.

void session::start_other(const frame_header& h) {
  begin(h.id);
  const auto self = shared_from_this();
  const auto answer = [self, id = h.id](const failure& f) { self->reply(id, f); };
  auto& node = host_.node();
  try {
    switch (h.kind) {
      case frame_kind::ping:
        return reply(h.id, {});
      case frame_kind::stats:
        return reply(h.id, {}, wire::encode(host_.statistics()));
      case frame_kind::fence:
        return host_.fence(client_.client, wire::decode_fence(reader_.body()),
                           [answer] { answer({}); });
      case frame_kind::list:
        return node.list([self, id = h.id](const failure& f, std::vector<storage::file_id> ids) {
          self->reply(id, f, wire::encode_ids(ids));
        });
      default:
        break;
    }
    const wire::io_request r = wire::decode_io_request(reader_.body());
    const std::uint32_t rights = h.kind == frame_kind::create   ? wire::right_make
                                 : h.kind == frame_kind::remove ? wire::right_remove
                                 : h.kind == frame_kind::verify ? wire::right_read
                                                                : wire::right_write;
    if (h.kind == frame_kind::remove) {
      if (failure f = host_.check_ticket(r.ticket, r.file->id, rights)) return reply(h.id, f);
      return node.remove(r.file, answer);
    }
    if (const failure f = check(r, rights)) return reply(h.id, f);
    switch (h.kind) {
      case frame_kind::create:
        return node.create(r.file, r.turn, answer);
      case frame_kind::resize:
        return node.resize(r.file, r.turn, r.old_size, answer);
      case frame_kind::sync:
        return node.sync(r.file, r.turn, answer);
      default:
        return node.verify(r.file, r.turn,
                           [self, id = h.id](const failure& f, storage::verify_report report) {
                             self->reply(id, f, wire::encode(report));
                           });
    }
  } catch (const error& e) {
    reply(h.id, {e.code(), e.what()});
  }
}

}  // namespace ooc::iod
