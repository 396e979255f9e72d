#include "iod/incoming_writes.hpp"

#include <sys/uio.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <optional>
#include <utility>

#include "storage/wire/capability.hpp"

namespace ooc::iod {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using storage::io_part;
using wire::frame_header;

namespace {

constexpr std::uint64_t max_holding = 4 * io_part::max_bytes;

[[noreturn]] void broken(const std::string& why) {
  throw wire::connection_error(std::make_error_code(std::errc::protocol_error), why);
}

}  // namespace

struct incoming_writes::write_job {
  std::uint64_t id = 0;
  wire::io_request what;
  std::optional<storage::part_cutter> parts;
  bool refused = false;  // what still comes of it is skipped
  failure outcome;       // guarded by the mutex, as are the rest
  std::uint64_t running = 0;
  bool complete = false;  // every part has come
  bool replied = false;
};

incoming_writes::incoming_writes(conversation_ptr with, std::shared_ptr<wire::stream_socket> socket,
                                 wire::frame_reader& reader)
    : with_(std::move(with)),
      socket_(std::move(socket)),
      reader_(reader),
      room_(socket_->get_executor(), std::chrono::steady_clock::time_point::max()) {}

asio::awaitable<void> incoming_writes::receive(const frame_header& h) {
  std::shared_ptr<write_job> w;
  if (h.kind == wire::frame_kind::write) {
    w = begin(h);
  } else {
    const auto found = jobs_.find(h.id);
    if (found == jobs_.end()) broken("a part of no write");
    w = found->second;
  }
  co_await receive_part(h, w);
  if (!h.has(frame_header::last)) co_return;
  jobs_.erase(h.id);
  with_->active().all_came(h.id);
  complete(w);
}

void incoming_writes::abandon() {
  for (const auto& [id, w] : std::exchange(jobs_, {})) complete(w);
}

std::shared_ptr<incoming_writes::write_job> incoming_writes::begin(const frame_header& h) {
  with_->active().begin(h.id, true);
  const auto w = std::make_shared<write_job>();
  w->id = h.id;
  std::vector<storage::piece> pieces;
  try {
    w->what = wire::decode_io_request(reader_.body());
    w->outcome = with_->check(w->what, wire::right_write);
    if (!w->outcome) pieces = with_->pieces_of(h.id, w->what);
    if (overlap(pieces))
      w->outcome = {errc::invalid_request,
                    "'" + w->what.file->name + "': pieces of the request overlap in the file"};
  } catch (const error& e) {
    w->outcome = {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    w->outcome = too_many_pieces();
  }
  w->refused = static_cast<bool>(w->outcome);
  w->parts.emplace(std::move(pieces));
  return jobs_[h.id] = w;
}

asio::awaitable<void> incoming_writes::receive_part(const frame_header& h,
                                                    std::shared_ptr<write_job> w) {
  if (w->refused) {
    co_await reader_.skip(h.payload_bytes);
    co_return;
  }
  const io_part part = storage::packed(w->parts->next());
  if (part.sums() != h.sums || part.wire_bytes() != h.payload_bytes ||
      w->parts->at_end() != h.has(frame_header::last))
    broken("a part of another size than the request has");
  if (part.bytes == 0) co_return;
  const auto buffer = co_await take_buffer(part.bytes);
  if (!*buffer) {
    const failure f = with_->unexpected(std::bad_alloc());
    {
      const std::lock_guard lock(mutex_);
      if (!w->outcome) w->outcome = f;
    }
    co_return co_await reader_.skip(h.payload_bytes);
  }
  const auto sums = std::make_shared<std::vector<std::uint32_t>>(part.sums());
  std::array<iovec, 2> places{iovec{sums->data(), sums->size() * 4},
                              iovec{buffer->data(), part.bytes}};
  co_await reader_.payload(places);
  write_part(w, part, buffer, sums);
}

// Room.

void incoming_writes::wake() {
  asio::post(socket_->get_executor(), [self = shared_from_this()] { self->room_.cancel(); });
}

// Wake-ups run on the same strand, so none is lost between the look and the wait.
template <class Condition>
asio::awaitable<void> incoming_writes::wait_for(Condition condition) {
  while (!condition()) {
    room_.expires_after(1s);
    boost::system::error_code ec;
    co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    if (with_->sender().closed()) broken("the connection was closed");
  }
}

// A buffer, once this client has not too many already.
asio::awaitable<incoming_writes::shared_buffer> incoming_writes::take_buffer(std::size_t bytes) {
  waiting_ = true;
  co_await wait_for([&] {
    const std::lock_guard lock(mutex_);
    return holding_ < max_holding;
  });
  struct place {
    std::mutex mutex;
    shared_buffer buffer;
  };
  const auto p = std::make_shared<place>();
  with_->host().write_buffers()->take(bytes, [p, self = shared_from_this()](buffer_pool::buffer b) {
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
  if (*p->buffer) holding_ += bytes;
  co_return p->buffer;
}

// Writing.

void incoming_writes::write_part(const std::shared_ptr<write_job>& w, const io_part& part,
                                 shared_buffer bytes, shared_sums sums) {
  {
    const std::lock_guard lock(mutex_);
    ++w->running;
  }
  const fair_queue::place where{w->what.file->id, part.pieces.front().node_offset};
  with_->queue(where, part.bytes,
               [self = shared_from_this(), w, part, bytes, sums](std::function<void()> finished) {
                 self->with_->host().node().write_part(
                     w->what.file, w->what.turn, part, bytes->data(), sums->data(),
                     [self, w, n = part.bytes, bytes, sums, finished](const failure& f) {
                       *bytes = {};
                       self->written(w, n, f);
                       finished();
                     });
               },
               [self = shared_from_this(), w, n = part.bytes, bytes](const failure& f) {
                 *bytes = {};
                 self->written(w, n, f);
               });
}

void incoming_writes::written(const std::shared_ptr<write_job>& w, std::uint64_t bytes,
                              const failure& f) {
  {
    const std::lock_guard lock(mutex_);
    holding_ -= bytes;
    --w->running;
    if (f && !w->outcome) w->outcome = f;
  }
  wake();
  answer_if_done(w);
}

void incoming_writes::complete(const std::shared_ptr<write_job>& w) {
  {
    const std::lock_guard lock(mutex_);
    w->complete = true;
  }
  answer_if_done(w);
}

// When all its parts have come and have been written.
void incoming_writes::answer_if_done(const std::shared_ptr<write_job>& w) {
  failure outcome;
  {
    const std::lock_guard lock(mutex_);
    if (!w->complete || w->running != 0 || w->replied) return;
    w->replied = true;
    outcome = w->outcome;
  }
  with_->reply(w->id, outcome);
}

}  // namespace ooc::iod
