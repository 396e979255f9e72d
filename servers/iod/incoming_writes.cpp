#include "iod/incoming_writes.hpp"

#include <sys/uio.h>

#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <optional>
#include <utility>

#include "daemon/await_grant.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::iod {

namespace asio = boost::asio;
using storage::io_part;
using wire::frame_header;

struct incoming_writes::write_job {
  std::uint64_t id = 0;
  wire::io_request what;
  std::optional<storage::part_cutter> parts;
  bool refused = false;  // what still comes of it is skipped

  // The outcome: said by the connection and by the threads of the node.
  ooc::mutex mutex;
  failure outcome OOC_GUARDED_BY(mutex);
  std::uint64_t running OOC_GUARDED_BY(mutex) = 0;
  bool complete OOC_GUARDED_BY(mutex) = false;  // every part has come
  bool replied OOC_GUARDED_BY(mutex) = false;
};

incoming_writes::incoming_writes(request_context_ptr with, std::shared_ptr<wire::stream_socket> socket,
                                 wire::frame_reader& reader)
    : with_(std::move(with)), socket_(std::move(socket)), reader_(reader) {}

asio::awaitable<void> incoming_writes::begin(const frame_header& h, described_request r, const failure& why) {
  const auto w = std::make_shared<write_job>();
  w->id = h.id;
  w->what = std::move(r.what);
  failure refusal = why;
  if (!refusal && overlap(r.regions))
    refusal = {errc::invalid_request, "'" + w->what.file->name + "': regions of the request overlap in the file"};
  w->refused = static_cast<bool>(refusal);
  {
    const lock_guard lock(w->mutex);
    w->outcome = std::move(refusal);
  }
  w->parts.emplace(std::move(r.regions));
  jobs_[h.id] = w;
  co_await receive(h, w);
}

asio::awaitable<void> incoming_writes::receive_more(const frame_header& h) {
  const auto found = jobs_.find(h.id);
  if (found == jobs_.end()) broken("a part of no write");
  co_await receive(h, found->second);
}

asio::awaitable<void> incoming_writes::receive(const frame_header& h, std::shared_ptr<write_job> w) {
  co_await receive_part(h, w);
  if (!h.has(frame_header::last)) co_return;
  jobs_.erase(h.id);
  with_->active().all_came(h.id);
  complete(w);
}

void incoming_writes::abandon() {
  for (const auto& [id, w] : std::exchange(jobs_, {})) complete(w);
}

asio::awaitable<void> incoming_writes::receive_part(const frame_header& h, std::shared_ptr<write_job> w) {
  if (w->refused) {
    co_await reader_.skip(h.payload_bytes);
    co_return;
  }
  const io_part part = storage::packed(w->parts->next());
  if (part.sums() != h.sums || part.wire_bytes() != h.payload_bytes || w->parts->at_end() != h.has(frame_header::last))
    broken("a part of another size than the request has");
  if (part.bytes == 0) co_return;
  const auto buffer = co_await take_buffer(part.bytes);
  if (!*buffer) {
    const failure f = with_->unexpected(std::bad_alloc());
    {
      const lock_guard lock(w->mutex);
      if (!w->outcome) w->outcome = f;
    }
    co_return co_await reader_.skip(h.payload_bytes);
  }
  const auto sums = std::make_shared<std::vector<std::uint32_t>>(part.sums());
  std::array<iovec, 2> places{iovec{sums->data(), sums->size() * 4}, iovec{buffer->data(), part.bytes}};
  co_await reader_.payload(places);
  write_part(w, part, buffer, sums);
}

asio::awaitable<incoming_writes::shared_buffer> incoming_writes::take_buffer(std::size_t bytes) {
  waiting_ = true;
  const auto with = with_;
  const auto ask = [with, bytes](auto go) { with->host().buffers()->take(with->number(), bytes, std::move(go)); };
  const auto gone = [with] { return with->sender().closed(); };
  buffer_pool::buffer got = co_await servers::await_grant<buffer_pool::buffer>(socket_->get_executor(), ask, gone);
  waiting_ = false;
  if (gone()) broken("the connection was closed");
  co_return std::make_shared<buffer_pool::buffer>(std::move(got));
}

// Writing.

void incoming_writes::write_part(const std::shared_ptr<write_job>& w, const io_part& part, shared_buffer bytes,
                                 shared_sums sums) {
  {
    const lock_guard lock(w->mutex);
    ++w->running;
  }
  try {
    with_->node()->write_part(w->what.file, w->what.stripe_index, part, bytes->data(), sums->data(),
                              [self = shared_from_this(), w, bytes, sums](const failure& f) {
                                *bytes = {};
                                self->written(w, f);
                              });
  } catch (const std::exception& e) {
    *bytes = {};
    written(w, with_->unexpected(e));
  }
}

void incoming_writes::written(const std::shared_ptr<write_job>& w, const failure& f) {
  {
    const lock_guard lock(w->mutex);
    --w->running;
    if (f && !w->outcome) w->outcome = f;
  }
  answer_if_done(w);
}

void incoming_writes::complete(const std::shared_ptr<write_job>& w) {
  {
    const lock_guard lock(w->mutex);
    w->complete = true;
  }
  answer_if_done(w);
}

// When all its parts have come and have been written.
void incoming_writes::answer_if_done(const std::shared_ptr<write_job>& w) {
  failure outcome;
  {
    const lock_guard lock(w->mutex);
    if (!w->complete || w->running != 0 || w->replied) return;
    w->replied = true;
    outcome = w->outcome;
  }
  with_->reply(w->id, outcome);
}

}  // namespace ooc::iod
