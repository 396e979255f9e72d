#include "mount/live_file.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <new>
#include <utility>

#include "mount/error_number.hpp"
#include "storage/base/log.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::mount {

using storage::claim_taker;
using storage::entry;
using storage::open_mode;
using storage::opened_file;
using snapshot = storage::growing_file::snapshot;

namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
// Writes are answered before their bytes are in the store while fewer than these are on the way.
constexpr std::size_t most_sending = std::size_t{16} << 20;

bool is_array(const entry& e) { return !e.array.extents.empty(); }
bool is_array(const opened_file& f) { return is_array(f.meta); }

}  // namespace

void live_file::open(bool write, bool removed) {
  const lock_guard changing(changing_);
  std::shared_ptr<void> claim;
  // Arrays, which others write as whole blocks, one at a time, must not change behind them.
  const auto take = [&](const entry& e) {
    if (!is_array(e)) return false;
    claim = claim_to_write(bytes_.store(), id_, true);
    if (!claim) throw usage_error(errc::busy, "'" + e.path + "' is open for writing in another program");
    return true;
  };
  // Who has a commit open stays with it; who opens the file after another one was made sees that.
  const snapshot known = bytes_.current();
  const bool anew = !known || (write && !writable_) || known->meta.at_commit;
  opened_file now = !anew   ? *bytes_.refreshed()
                    : write ? bytes_.store().open(id_, open_mode::read_write, {take, false})
                            : bytes_.store().open(id_, open_mode::read);
  // Its stripe objects go, if who has removed the file did not find it open.
  if (now.meta.names == 0 && !removed)
    throw io_error::in_full(std::make_error_code(std::errc::no_such_file_or_directory),
                            "'" + now.meta.path + "' has been removed");
  if (anew) bytes_.open(std::move(now), std::move(claim));
  writable_ = writable_ || write;
  const lock_guard lock(mutex_);
  unpublished_.learned(bytes_.current()->meta.size);
  if (!known) unpublished_.begins(bytes_.current()->meta);
  if (write) ++writers_;
}

void live_file::close_all() {
  {
    const lock_guard lock(mutex_);
    writers_ = 1;
  }
  close(true);
}

// After the last writer what is past the size goes back, unless another writer has come meanwhile.
void live_file::close(bool write) {
  if (!write) return;
  {
    const lock_guard lock(mutex_);
    if (--writers_ != 0) return;
  }
  if (const int error = flush_and_wait())
    detail::log_error(
        "mount: '" + bytes_.current()->meta.path +
        "': its size could not be told, and what was written past the former one is lost: " + std::strerror(error));
  const lock_guard changing(changing_);
  {
    const lock_guard lock(mutex_);
    // Bytes of which the metadata service could not be told must not be cut off either.
    if (writers_ != 0 || unpublished_.any()) return;
  }
  writable_ = false;
  if (!bytes_.leave() || is_array(*bytes_.current())) return;
  try {
    bytes_.give_back();
  } catch (const std::exception& e) {
    detail::log_error("mount: space past the end of '" + bytes_.current()->meta.path +
                      "' is given back later: " + e.what());
  }
}

bool live_file::writable() const {
  const lock_guard lock(changing_);
  return writable_;
}

std::uint64_t live_file::size() const {
  const lock_guard lock(mutex_);
  return unpublished_.size();
}

void live_file::overlay(entry& e) {
  bool ask = false;
  {
    const lock_guard lock(mutex_);
    if (!bytes_.current()) return;
    // Where bytes of others are past what is known here, and before what was written here, they count as well.
    ask = unpublished_.any() ? e.size > std::min(unpublished_.size(), bytes_.room()) : e.size != unpublished_.size();
  }
  // Another has changed it, or `e` is older than what was published here.
  if (ask) try {
      (void)bytes_.refreshed();
      const lock_guard lock(mutex_);
      unpublished_.learned(bytes_.current()->meta.size);
      e.size = unpublished_.size();
    } catch (const std::exception&) {
      // The size that `e` has is all that is known.
    }
  const lock_guard lock(mutex_);
  unpublished_.overlay(e);
}

std::uint64_t live_file::errors_so_far() const {
  const lock_guard lock(mutex_);
  return errors_;
}

int live_file::take_error(std::uint64_t& seen) const {
  const lock_guard lock(mutex_);
  return std::exchange(seen, errors_) == errors_ ? 0 : error_;
}

int live_file::publish() {
  const lock_guard changing(changing_);
  std::optional<unpublished::news> news;
  {
    const lock_guard lock(mutex_);
    news = unpublished_.to_tell(bytes_.current()->meta.size);
    if (!news) return 0;
  }
  try {
    bytes_.show(news->stored, [&](const entry& now) {
      storage::entry_change c;
      c.data_changed_ns = news->time_beside(now);
      return c;
    });
  } catch (...) {
    return error_number();
  }
  const lock_guard lock(mutex_);
  // Bytes that are not stored yet, or were stored meanwhile, are told later.
  unpublished_.told(*news, sending_ == 0 && buffer_.empty(), bytes_.current()->meta.size);
  return 0;
}

int live_file::resize(std::uint64_t size) {
  if (size > max_size) return EFBIG;
  if (is_array(*bytes_.current())) return size == this->size() ? 0 : EPERM;
  const turn mine = wait_for_all();
  // Bytes that are stored and not seen would come to light when the file is made longer again.
  if (const int error = publish()) return error;
  try {
    bytes_.resize(size);
  } catch (...) {
    return error_number();
  }
  const lock_guard lock(mutex_);
  // A write that is waiting for its turn has set the size already.
  unpublished_.resized(std::max(size, buffer_.file_end()));
  return 0;
}

int live_file::allocate(std::uint64_t end, bool keep_size) {
  if (end > max_size) return EFBIG;
  const snapshot f = bytes_.current();
  if (is_array(*f)) return end <= size() ? 0 : EFBIG;
  if (end <= bytes_.room() && (keep_size || end <= size())) return 0;
  try {
    if (keep_size) return bytes_.claim() ? make_room(bytes_, end, false, false) : EBUSY;
    if (const int error = make_room(bytes_, end, false, true)) return error;
    const lock_guard lock(mutex_);
    unpublished_.allocated({end, bytes_.current()->meta});
    return 0;
  } catch (...) {
    return error_number();
  }
}

live_file::outgoing live_file::seal() {
  if (buffer_.empty()) return {};
  auto w = std::make_shared<outgoing_write>(buffer_, bytes_, jobs_, ranges_);
  sending_ += w->bytes();
  return w;
}

void live_file::send(const outgoing& w, answer done, bool seen_soon) {
  w->send(seen_soon, [self = shared_from_this(), w = w.get(), done = std::move(done)](int error) {
    self->ended(*w, error);
    self->ranges_.leave(w->place());
    if (done) done(error);
  });
}

void live_file::ended(const outgoing_write& w, int error) {
  const lock_guard lock(mutex_);
  sending_ -= w.bytes();
  unpublished_.stored(w.stored());
  if (error == 0) return;
  if (error == ENOSPC || error == EFBIG) unpublished_.refused(std::max(w.begin(), w.stored().end));
  error_ = error;
  ++errors_;
}

void live_file::write(std::uint64_t offset, std::span<const std::byte> bytes, bool through, answer done) {
  const snapshot f = bytes_.current();
  const bool fits = bytes.size() <= max_size && offset <= max_size - bytes.size() &&
                    (!is_array(*f) || offset + bytes.size() <= f->meta.size);
  if (!fits) return done(EFBIG);
  const std::uint64_t begin = offset;
  std::vector<outgoing> full;
  bool wait = through, no_memory = false;
  {
    const lock_guard lock(mutex_);
    const auto seal_to_send = [&]() OOC_REQUIRES(mutex_) {
      full.emplace_back();  // before anything leaves the buffer
      full.back() = seal();
    };
    try {
      if (through && !buffer_.empty()) seal_to_send();
      while (!bytes.empty()) {
        const std::size_t n = buffer_.put(offset, bytes);
        offset += n;
        bytes = bytes.subspan(n);
        if (n == 0 || buffer_.full() || (through && bytes.empty())) seal_to_send();
      }
    } catch (const std::bad_alloc&) {
      no_memory = true;  // what was sealed is sent all the same: others wait behind it
      if (!full.empty() && !full.back()) full.pop_back();
    }
    unpublished_.wrote(begin, offset);
    wait = (wait || sending_ > most_sending) && !no_memory;
  }
  for (std::size_t i = 0; i < full.size(); ++i)
    send(full[i], wait && i + 1 == full.size() ? std::exchange(done, {}) : answer());
  if (done) done(no_memory ? ENOMEM : 0);  // not before: where the file cannot grow the next write is to be told
}

int live_file::zero(std::uint64_t offset, std::uint64_t length) {
  static const page_memory zeros(write_buffer::most_bytes, true);
  std::uint64_t seen = errors_so_far();
  int refused = 0;
  while (length != 0 && refused == 0) {
    const std::size_t n = std::min<std::uint64_t>(length, zeros.bytes);
    const auto answered = std::make_shared<std::promise<int>>();
    write(offset, {zeros.data.get(), n}, false, [answered](int error) { answered->set_value(error); });
    refused = answered->get_future().get();  // comes later where much is on the way
    offset += n;
    length -= n;
  }
  const int told = flush_and_wait(), failed = take_error(seen);
  return failed != 0 ? failed : refused != 0 ? refused : told;
}

void live_file::read(std::uint64_t offset, std::size_t length, read_answer done) {
  outgoing here;
  std::uint64_t end = 0;
  bool told = false;
  {
    const lock_guard lock(mutex_);
    end = std::min<std::uint64_t>(unpublished_.size(), offset > max_size - length ? max_size : offset + length);
    if (offset >= end) end = offset;
    if (buffer_.overlaps(offset, end)) here = seal();
    told = !unpublished_.any();
  }
  if (here) send(here, {});
  if (offset == end) return done(0, {});
  // Another may have made it longer.  Before what was written here there may also be nothing, for long.
  using duration = storage::growing_file::clock::duration;
  if (end > bytes_.room()) (void)bytes_.reaching(end, told ? duration::zero() : asked_anew);
  const auto t = ranges_.enter({{offset, end}}, false);
  const auto ended = [self = shared_from_this(), t, done = std::move(done)](int error,
                                                                            std::span<const std::byte> bytes) {
    self->ranges_.leave(t);
    done(error, bytes);
  };
  ranges_.start(t, [self = shared_from_this(), offset, end, ended] { self->read_stored(offset, end, ended); });
}

void live_file::read_stored(std::uint64_t offset, std::uint64_t end, const read_answer& done) {
  try {
    const snapshot f = bytes_.current();
    // Between what is stored and what was written past it there is nothing yet.
    const std::uint64_t stored = std::min({end, bytes_.room(), f->file->shape().size});
    auto memory = std::make_shared<page_memory>(end - offset, stored < end);
    if (stored <= offset) return done(0, {memory->data.get(), memory->bytes});
    f->file->read(std::make_shared<const request>(request::contiguous(offset, stored - offset)), memory->data.get(),
                  [memory, done](const failure& e) {
                    if (e) detail::log_error("mount: " + e.what);
                    done(error_number(e), {memory->data.get(), memory->bytes});
                  });
  } catch (...) {
    done(error_number(), {});
  }
}

// Calls `go` when everything that came before has ended; nothing that comes later starts before the turn is over.
void live_file::after_all(std::function<void(const turn&)> go) {
  outgoing rest;
  range_queue::ticket t;
  {
    const lock_guard lock(mutex_);
    rest = seal();
    t = ranges_.enter({{0, no_end}}, true);
  }
  if (rest) send(rest, {}, true);
  ranges_.start(t, [self = shared_from_this(), t, go = std::move(go)] {
    go(turn(self.get(), [self, t](void*) { self->ranges_.leave(t); }));
  });
}

live_file::turn live_file::wait_for_all() {
  const auto mine = std::make_shared<std::promise<turn>>();
  after_all([mine](const turn& t) { mine->set_value(t); });
  return mine->get_future().get();
}

void live_file::flush(answer done) {
  after_all([self = shared_from_this(), done = std::move(done)](const turn&) {
    self->jobs_.post([self, done] { done(self->publish()); });
  });
}

void live_file::sync(answer done) {
  after_all([self = shared_from_this(), done = std::move(done)](const turn&) {
    const snapshot f = self->bytes_.current();
    f->file->sync([self, done](const failure& e) {
      if (e) detail::log_error("mount: " + e.what);
      self->jobs_.post([self, done, error = error_number(e)] { self->synced(error, done); });
    });
  });
}

void live_file::synced(int error, const answer& done) {
  const int other = publish();
  if (error == 0) error = other;
  try {
    bytes_.store().sync_entry(*bytes_.current());
  } catch (...) {
    if (error == 0) error = error_number();
  }
  done(error);
}

int live_file::flush_and_wait() {
  // Not by flush(): this may run on the thread that would publish.
  wait_for_all().reset();
  return publish();
}

}  // namespace ooc::mount
