#include "iod/read_request.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "storage/node/small_reads.hpp"
#include "storage/wire/capability.hpp"

namespace ooc::iod {

using wire::frame_header;

void read_request::start(request_context_ptr with, const frame_header& h, described_request what) {
  const auto r = std::make_shared<read_request>(with, h.id);
  r->what_ = std::move(what.what);
  if (h.has(frame_header::checked)) r->who_checks_ = storage::checking::here;
  if (what.regions.empty()) return with->reply(h.id, {});
  r->parts_.emplace(std::move(what.regions));
  r->next_part();
  if (!r->send_quickly()) r->get_part();
}

void read_request::next_part() {
  part_ = storage::packed(parts_->next());
  sums_.resize(part_.sums());
}

// A small read that needs no disk: answered at once, before its turn, as it takes nobody's time.
bool read_request::send_quickly() {
  if (!parts_->at_end() || who_checks_ != storage::checking::by_caller || part_.bytes > storage::max_quick_bytes)
    return false;
  // Bytes that the client does not take at once stay in memory.
  auto room = with_->host().buffers()->try_room(with_->number(), part_.wire_bytes());
  if (!room) return false;
  frame_header h = with_->reply_header(id_);
  h.sums = part_.sums();
  h.flags = frame_header::last;
  const auto wire_bytes = static_cast<std::uint32_t>(part_.wire_bytes());
  std::string answer = wire::encode_frame(h, {}, wire_bytes);
  const std::size_t sums_at = answer.size();
  const std::size_t data_at = sums_at + sums_.size() * 4;
  answer.resize(sums_at + wire_bytes);
  if (!with_->host().node().read_inline(*what_.file, what_.stripe_index, part_,
                                        reinterpret_cast<std::byte*>(answer.data() + data_at), sums_.data()))
    return false;
  std::memcpy(answer.data() + sums_at, sums_.data(), sums_.size() * 4);
  with_->active().answered(id_);
  with_->sender().send({std::move(answer),
                        {},
                        [self = shared_from_this(), held = std::make_shared<fair_share::claim>(std::move(room))](bool) {
                          *held = {};
                          self->with_->active().end(self->id_);
                        }});
  return true;
}

// Called by who sends, and must not be stopped by what concerns one request.
void read_request::go_on() try {
  next_part();
  get_part();
} catch (const std::exception& e) {
  room_ = {};
  with_->reply(id_, with_->unexpected(e));
}

// Memory first, then its turn: the memory of a client is bounded, and so is what it has in the queue of
// the node.
void read_request::get_part() {
  with_->host().buffers()->take(with_->number(), part_.bytes,
                                [self = shared_from_this()](buffer_pool::buffer b) { self->fetch_part(std::move(b)); });
}

// Perhaps on another client's thread, which gave the memory back.
void read_request::fetch_part(buffer_pool::buffer room) try {
  if (with_->sender().closed()) return with_->active().end(id_);
  if (!room) throw std::bad_alloc();
  room_ = std::move(room);
  with_->node()->read_part(what_.file, what_.stripe_index, part_, room_.data(), sums_.data(), who_checks_,
                           [self = shared_from_this()](const failure& f) { self->send_part(f); });
} catch (const std::exception& e) {
  send_part(with_->unexpected(e));
}

void read_request::send_part(const failure& f) {
  if (f) {
    room_ = {};
    return with_->reply(id_, f);
  }
  const bool last = parts_->at_end();
  frame_header h = with_->reply_header(id_);
  h.sums = part_.sums();
  if (last) h.flags = frame_header::last;
  const std::uint64_t bytes = part_.bytes;
  wire::frame_sender::message m;
  m.head = wire::encode_frame(h, {}, static_cast<std::uint32_t>(part_.wire_bytes()));
  m.head.append(reinterpret_cast<const char*>(sums_.data()), sums_.size() * 4);
  // The buffer goes with the message.  The next part is read when the system has taken this one, and
  // sends from its own buffers meanwhile: a request of a slow client holds one part, not two.
  const auto held = std::make_shared<buffer_pool::buffer>(std::move(room_));
  m.payload.push_back({held->data(), bytes});
  m.released = [self = shared_from_this(), held, last](bool) {
    *held = {};
    if (last) {
      self->with_->active().end(self->id_);
    } else {
      self->go_on();
    }
  };
  if (last)
    with_->active().answered(id_);
  else
    with_->active().touch(id_);
  with_->sender().send(std::move(m));
}

}  // namespace ooc::iod
