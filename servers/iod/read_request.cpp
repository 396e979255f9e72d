#include "iod/read_request.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "storage/quick_read.hpp"
#include "storage/wire/capability.hpp"

namespace ooc::iod {

using wire::frame_header;

void read_request::start(conversation_ptr with, const frame_header& h, std::string_view body) {
  with->active().begin(h.id);
  const auto r = std::make_shared<read_request>(with, h.id);
  std::vector<storage::piece> pieces;
  try {
    r->what_ = wire::decode_io_request(body);
    if (const failure f = with->check(r->what_, wire::right_read)) return with->reply(h.id, f);
    pieces = with->pieces_of(h.id, r->what_);
  } catch (const error& e) {
    return with->reply(h.id, {e.code(), e.what()});
  } catch (const std::bad_alloc&) {
    return with->reply(h.id, too_many_pieces());
  }
  if (h.has(frame_header::checked)) r->who_checks_ = storage::checking::here;
  if (pieces.empty()) return with->reply(h.id, {});
  r->parts_.emplace(std::move(pieces));
  r->next_part();
  if (!r->send_quickly()) r->queue_part();
}

void read_request::next_part() {
  part_ = storage::packed(parts_->next());
  sums_.resize(part_.sums());
}

// A small read that needs no disk: answered at once, before its turn, as it takes nobody's time.
bool read_request::send_quickly() {
  if (!parts_->at_end() || who_checks_ != storage::checking::by_caller ||
      part_.bytes > storage::max_quick_bytes)
    return false;
  frame_header h = with_->reply_header(id_);
  h.sums = part_.sums();
  h.flags = frame_header::last;
  const auto wire_bytes = static_cast<std::uint32_t>(part_.wire_bytes());
  std::string answer = wire::encode_frame(h, {}, wire_bytes);
  const std::size_t sums_at = answer.size();
  const std::size_t data_at = sums_at + sums_.size() * 4;
  answer.resize(sums_at + wire_bytes);
  if (!with_->host().node().read_quickly(*what_.file, what_.turn, part_,
                                         reinterpret_cast<std::byte*>(answer.data() + data_at),
                                         sums_.data()))
    return false;
  std::memcpy(answer.data() + sums_at, sums_.data(), sums_.size() * 4);
  with_->sender().send({std::move(answer), {}, {}});
  with_->active().end(id_);
  return true;
}

// Called by who sends, and must not be stopped by what concerns one request.
void read_request::go_on() try {
  next_part();
  queue_part();
} catch (const std::exception& e) {
  room_ = {};
  with_->reply(id_, with_->unexpected(e));
}

void read_request::queue_part() {
  with_->reading().take(buffer_pool::room_of(part_.bytes),
                        [self = shared_from_this()](allowance::claim c) {
                          self->room_.claim = std::move(c);
                          self->wait_for_turn();
                        });
}

void read_request::wait_for_turn() {
  const fair_queue::place where{what_.file->id, part_.pieces.front().node_offset};
  with_->queue(where, part_.bytes,
               [self = shared_from_this()](std::function<void()> finished) {
                 self->fetch_part(std::move(finished));
               },
               [self = shared_from_this()](const failure& f) { self->send_part(f); });
}

// Its turn has come.
void read_request::fetch_part(std::function<void()> finished) {
  if (with_->sender().closed()) {
    room_ = {};
    with_->active().end(id_);
    return finished();
  }
  with_->host().buffers()->take(
      part_.bytes,
      [self = shared_from_this(), finished = std::move(finished)](buffer_pool::buffer b) {
        const auto done = [self, finished](const failure& f) {
          self->send_part(f);
          finished();
        };
        try {  // where there was to wait for it, it is another client's thread
          if (!b) throw std::bad_alloc();
          self->room_.bytes = std::move(b);
          self->with_->host().node().read_part(
              self->what_.file, self->what_.turn, self->part_, self->room_.bytes.data(),
              self->sums_.data(), self->who_checks_, done);
        } catch (const std::exception& e) {
          done(self->with_->unexpected(e));
        }
      });
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
  const auto held = std::make_shared<room>(std::move(room_));
  m.payload.push_back({held->bytes.data(), bytes});
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
