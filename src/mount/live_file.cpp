#include "mount/live_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <semaphore>
#include <utility>

#include "mount/error_number.hpp"
#include "storage/base/log.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::mount {

using storage::allocated_size;
using storage::claim_to_write;
using storage::claim_taker;
using storage::entry;
using storage::entry_change;
using storage::open_mode;
using storage::opened_file;

namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
// Writes are answered before their bytes are in the store while fewer than these are on the way.
constexpr std::size_t most_sending = std::size_t{16} << 20;
// So old may be what is known of the size while bytes are sent.
constexpr std::chrono::seconds asked_anew{1};

bool is_array(const entry& e) { return !e.array.extents.empty(); }
bool is_array(const opened_file& f) { return is_array(f.meta); }

/// What of it is before `end`.
request part_before(const request& r, std::uint64_t end) {
  request part;
  r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t n) {
    if (at < end) part.add(at, memory, std::min(n, end - at));
  });
  return part;
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Bytes that are on their way to the store, with their place in the queue.
struct live_file::sealed {
  page_memory memory;
  std::shared_ptr<const request> wanted;
  std::uint64_t begin = 0;  // in the file
  std::size_t bytes = 0;  // when it was sealed
  bool full = false;
  bool told_soon = false;  // a publication follows
  int lost = 0;  // errno: some of it found no room, and the rest is on its way without
  std::uint64_t cuts = 0;  // of the file as which it was sent last
  range_queue::ticket ticket;
};

live_file::opened live_file::current() const {
  const lock_guard lock(mutex_);
  return file_;
}

void live_file::replace(opened_file f) {
  // What others have reserved is theirs, and goes when they let go.
  if (!claim_) f.meta.reserved = 0;
  auto next = std::make_shared<const opened_file>(std::move(f));
  asked_at_ = std::chrono::steady_clock::now();
  const lock_guard lock(mutex_);
  // What was stored past the size has been cut off, also where there is space again by now.
  if (file_ && (file_->meta.cuts < next->meta.cuts || untold_end_ > allocated_size(next->meta))) untold_end_ = 0;
  file_ = std::move(next);
}

void live_file::open(bool write) {
  const lock_guard changing(changing_);
  const opened before = current();
  // What others write as whole blocks, one at a time, must not change behind them.
  const auto take = [this](const entry& e) OOC_REQUIRES(changing_) {
    if (!is_array(e)) return claim_taker::result::none;
    if (!claim_) claim_ = claim_to_write(*core_, id_, true);
    if (!claim_) throw usage_error(errc::busy, "'" + e.path + "' is open for writing in another program");
    return claim_taker::result::at_once;
  };
  const auto open_now = [&]() OOC_REQUIRES(changing_) {
    opened_file now = write && !writable_ ? core_->open(id_, open_mode::read_write, {take, false})
                      : before            ? core_->refresh(*before)
                                          : core_->open(id_, open_mode::read);
    // Its stripe objects go, if who has removed the file did not find it open.
    if (now.meta.names == 0 && !removed())
      throw io_error::in_full(std::make_error_code(std::errc::no_such_file_or_directory),
                              "'" + now.meta.path + "' has been removed");
    return now;
  };
  const std::shared_ptr<void> claimed = claim_;
  opened_file now;
  try {
    now = open_now();
  } catch (...) {
    claim_ = claimed;
    throw;
  }
  writable_ = writable_ || write;
  const std::uint64_t size = now.meta.size;
  replace(std::move(now));
  const lock_guard lock(mutex_);
  size_ = modified_ns_ ? std::max(size_, size) : size;
  if (write) ++writers_;
}

void live_file::close(bool write) {
  if (!write) return;
  {
    const lock_guard lock(mutex_);
    if (--writers_ != 0) return;
  }
  last_writer_left();
}

void live_file::close_all() {
  {
    const lock_guard lock(mutex_);
    writers_ = 0;
  }
  last_writer_left();
}

// What is past the size goes back, unless another writer has come meanwhile.
void live_file::last_writer_left() {
  if (const int error = flush_and_wait())
    detail::log_error("mount: '" + current()->meta.path +
                      "': its size could not be told, and what was written past the former one is lost: " +
                      std::strerror(error));
  const lock_guard changing(changing_);
  {
    const lock_guard lock(mutex_);
    // What could not be told must not be cut off either.
    if (writers_ != 0 || modified_ns_) return;
  }
  writable_ = false;
  if (!claim_) return;
  claim_.reset();
  const opened f = current();
  if (is_array(*f) || removed()) return;
  try {
    replace(core_->give_back(*f));
  } catch (const std::exception& e) {
    detail::log_error("mount: space past the end of '" + f->meta.path + "' is given back later: " + e.what());
  }
}

std::uint64_t live_file::size() const {
  const lock_guard lock(mutex_);
  return size_;
}

void live_file::set_removed(const storage::entry& e) {
  const lock_guard lock(mutex_);
  removed_ = e;
}

std::optional<storage::entry> live_file::removed() const {
  const lock_guard lock(mutex_);
  return removed_;
}

void live_file::overlay(storage::entry& e) {
  bool ask = false;
  {
    const lock_guard lock(mutex_);
    if (!file_) return;
    ask = modified_ns_ ? e.size > size_ : e.size != size_;
  }
  // Another has changed it, or `e` is older than what was published here.
  if (ask) try {
      const lock_guard changing(changing_);
      replace(core_->refresh(*current()));
      const lock_guard lock(mutex_);
      const std::uint64_t now = file_->meta.size;
      e.size = size_ = modified_ns_ ? std::max(size_, now) : now;
    } catch (const std::exception&) {
      // What `e` says is all that is known.
    }
  const lock_guard lock(mutex_);
  if (!modified_ns_) return;
  e.size = std::max(e.size, size_);
  e.data_changed_ns = *modified_ns_;
}

// Errors.

void live_file::fail(int error) {
  const lock_guard lock(mutex_);
  error_ = error;
  ++errors_;
}

std::uint64_t live_file::errors_so_far() const {
  const lock_guard lock(mutex_);
  return errors_;
}

int live_file::take_error(std::uint64_t& seen) const {
  const lock_guard lock(mutex_);
  if (seen == errors_) return 0;
  seen = errors_;
  return error_;
}

// Growing.

int live_file::grow(std::uint64_t end, bool stream, bool ask) {
  try {
    const lock_guard changing(changing_);
    opened f = current();
    if (allocated_size(f->meta) >= end) {
      if (!ask && std::chrono::steady_clock::now() - asked_at_ < asked_anew) return 0;
      replace(core_->refresh(*f));
      f = current();
      if (allocated_size(f->meta) >= end) return 0;
    }
    if (is_array(*f)) return EFBIG;
    if (!stream || !reserve(end)) replace(core_->grow(*f, end));
    return 0;
  } catch (...) {
    return error_number();
  }
}

// False: nothing may be reserved, because somebody has the file for himself, or there is no space for that much.
bool live_file::reserve(std::uint64_t end) {
  if (!claim_) claim_ = claim_to_write(*core_, id_, true);
  if (!claim_) return false;
  const opened f = current();
  const std::uint64_t had = allocated_size(f->meta);
  try {
    replace(core_->reserve(*f, end, had + std::clamp(had, stream_step, greatest_step)));
  } catch (const error& e) {
    if (e.code() != std::errc::no_space_on_device && e.code() != std::errc::file_too_large) throw;
    return false;
  }
  return true;
}

int live_file::publish() {
  const lock_guard changing(changing_);
  opened_file now = *current();
  entry_change c;
  std::uint64_t end = 0;
  {
    const lock_guard lock(mutex_);
    if (!modified_ns_) return 0;
    c.data_changed_ns = *modified_ns_;
    // Only of what was appended in one run: else bytes would go that their writer knows to be stored.
    if (const auto& u = unpublished_; u.appended && u.no_room_from && *u.no_room_from >= now.meta.size)
      untold_end_ = std::min(untold_end_, *u.no_room_from);
    end = untold_end_;
  }
  try {
    if (end != 0) {
      const std::uint64_t cuts = now.meta.cuts;
      now = core_->refresh(now);
      // Another has cut it off, and what was stored past its size with it.
      if (now.meta.cuts > cuts || end > allocated_size(now.meta)) end = 0;
    }
    if (end > now.meta.size) c.size_at_least = end;
    std::uint64_t size = 0;
    try {
      size = core_->change(id_, c).size;
    } catch (const error& e) {
      if (!c.size_at_least || e.code() != std::errc::invalid_argument) throw;
      c.size_at_least.reset();  // cut off in this moment
      size = core_->change(id_, c).size;
    }
    if (size < now.meta.size || size > now.file->shape().size)
      now = core_->refresh(now);
    else
      now.meta.size = size;
    replace(std::move(now));
  } catch (...) {
    return error_number();
  }
  {
    const lock_guard lock(mutex_);
    // What is not stored yet, or was stored meanwhile, is told later.
    const bool all = untold_end_ == end && sending_ == 0 && buffer_.empty();
    if (untold_end_ == end) untold_end_ = 0;
    if (all && modified_ns_ == c.data_changed_ns) {
      modified_ns_.reset();
      unpublished_ = {};
      size_ = file_->meta.size;
    }
  }
  return 0;
}

// Transfers.

std::shared_ptr<live_file::sealed> live_file::seal() {
  if (buffer_.empty()) return {};
  auto s = std::make_shared<sealed>();
  s->full = buffer_.full();
  write_buffer::contents c = buffer_.take();
  s->memory = std::move(c.memory);
  s->bytes = c.wanted.bytes();
  std::vector<range_queue::range> ranges;
  c.wanted.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t n) {
    if (!ranges.empty() && ranges.back().end == at)
      ranges.back().end += n;
    else
      ranges.push_back({at, at + n});
  });
  s->wanted = std::make_shared<const request>(std::move(c.wanted));
  s->begin = ranges.front().begin;
  s->ticket = ranges_.enter(std::move(ranges), true);
  sending_ += s->bytes;
  return s;
}

void live_file::store(std::shared_ptr<sealed> s, answer ended, bool again) {
  try {
    const opened now = current();
    s->cuts = now->meta.cuts;
    now->file->write(s->wanted, s->memory.data.get(),
                           [self = shared_from_this(), s, ended, again, now](const failure& f) {
                             if (f.code == errc::cut_off)
                               return self->jobs_.post([self, s, ended, now] { self->store_after_cut(s, *now, ended); });
                             // That of removed files may be enough.
                             if (f.code == std::errc::no_space_on_device && !again)
                               return self->jobs_.post([self, s, ended] {
                                 self->core_->removals().finish();
                                 self->store(s, ended, true);
                               });
                             if (f) detail::log_error("mount: " + f.what);
                             ended(error_number(f));
                           });
  } catch (...) {
    ended(error_number());
  }
}

void live_file::store_after_cut(std::shared_ptr<sealed> s, const opened_file& refused, answer ended) {
  try {
    const lock_guard changing(changing_);
    if (current()->meta.cuts <= refused.meta.cuts) replace(storage::after_cut(*core_, refused));
  } catch (...) {
    return ended(error_number());
  }
  if (const int error = grow(s->wanted->file_end(), false, false)) return ended(error);
  store(std::move(s), std::move(ended));
}

void live_file::send(std::shared_ptr<sealed> s, answer done) {
  if (!s) return done(0);
  const auto ended = [self = shared_from_this(), s, done](int error) {
    {
      const lock_guard lock(self->mutex_);
      self->sending_ -= s->bytes;
      if (error == 0) {
        // What was stored before the last cut is gone, or within the size.
        if (s->cuts >= self->file_->meta.cuts)
          self->untold_end_ = std::max(self->untold_end_, s->wanted->file_end());
        error = s->lost;
      } else if (error == ENOSPC || error == EFBIG) {
        auto& from = self->unpublished_.no_room_from;
        from = std::min(from.value_or(s->begin), s->begin);
      }
    }
    if (error != 0) self->fail(error);
    self->ranges_.leave(s->ticket);
    done(error);
  };
  if (const int error = grow(s->wanted->file_end(), s->full, s->told_soon)) {
    auto inside = part_before(*s->wanted, allocated_size(current()->meta));
    if (inside.empty()) return ended(error);
    s->wanted = std::make_shared<const request>(std::move(inside));
    s->lost = error;
  }
  ranges_.start(s->ticket, [self = shared_from_this(), s, ended] {
    if (s->wanted->file_end() <= allocated_size(self->current()->meta)) return self->store(s, ended);
    // It was cut off while this waited for its turn.
    self->jobs_.post([self, s, ended] {
      if (const int error = self->grow(s->wanted->file_end(), false, false)) return ended(error);
      self->store(s, ended);
    });
  });
}

void live_file::write(std::uint64_t offset, std::span<const std::byte> bytes, bool through, answer done) {
  const opened f = current();
  const bool fits = bytes.size() <= max_size && offset <= max_size - bytes.size() &&
                    (!is_array(*f) || offset + bytes.size() <= f->meta.size);
  if (!fits) return done(EFBIG);
  std::vector<std::shared_ptr<sealed>> full;
  bool wait = through, no_memory = false;
  {
    const lock_guard lock(mutex_);
    auto& u = unpublished_;
    u.appended = u.appended && u.end.value_or(offset) == offset && !u.no_room_from;
    try {
      if (through && !buffer_.empty()) full.push_back(seal());
      while (!bytes.empty()) {
        const std::size_t n = buffer_.put(offset, bytes);
        offset += n;
        bytes = bytes.subspan(n);
        if (n == 0 || buffer_.full() || (through && bytes.empty())) full.push_back(seal());
      }
    } catch (const std::bad_alloc&) {
      no_memory = true;  // what was sealed is sent all the same: others wait behind it
    }
    size_ = std::max(size_, offset);
    u.end = offset;
    modified_ns_ = now_ns();
    wait = (wait || sending_ > most_sending) && !no_memory;
  }
  if (no_memory) done = [done](int) { done(ENOMEM); };
  if (full.empty()) return done(0);
  auto last = std::move(full.back());
  full.pop_back();
  for (auto& s : full) send(std::move(s), [](int) {});
  if (wait) return send(std::move(last), std::move(done));
  send(std::move(last), [](int) {});
  done(0);  // not before: where the file cannot grow the next write is to be told
}

void live_file::read(std::uint64_t offset, std::size_t length, read_answer done) {
  std::shared_ptr<sealed> here;
  std::uint64_t end = 0;
  bool longer = false;
  {
    const lock_guard lock(mutex_);
    end = std::min<std::uint64_t>(size_, offset > max_size - length ? max_size : offset + length);
    if (offset >= end) end = offset;
    if (buffer_.overlaps(offset, end)) here = seal();
    longer = end > allocated_size(file_->meta) && !modified_ns_;
  }
  if (here) send(std::move(here), [](int) {});
  if (offset == end) return done(0, {});
  if (longer) {  // another has made it longer
    const lock_guard changing(changing_);
    replace(core_->refresh(*current()));
  }
  const auto t = ranges_.enter({{offset, end}}, false);
  ranges_.start(t, [self = shared_from_this(), t, offset, end, done = std::move(done)] {
    const auto ended = [self, t, done](int error, std::span<const std::byte> bytes) {
      self->ranges_.leave(t);
      done(error, bytes);
    };
    try {
      const opened f = self->current();
      // Between what is stored and what was written past it there is nothing yet.
      const std::uint64_t stored = std::min(end, allocated_size(f->meta));
      auto memory = std::make_shared<page_memory>(end - offset, stored < end);
      if (stored <= offset) return ended(0, {memory->data.get(), memory->bytes});
      f->file->read(std::make_shared<const request>(request::contiguous(offset, stored - offset)),
                    memory->data.get(), [memory, ended](const failure& e) {
                      if (e) detail::log_error("mount: " + e.what);
                      ended(error_number(e), {memory->data.get(), memory->bytes});
                    });
    } catch (...) {
      ended(error_number(), {});
    }
  });
}

// Calls `go` when everything that came before has ended; nothing starts before `go` leaves its place.
void live_file::after_all(std::function<void(range_queue::ticket)> go) {
  std::shared_ptr<sealed> rest;
  range_queue::ticket t;
  {
    const lock_guard lock(mutex_);
    rest = seal();
    if (rest) rest->told_soon = true;
    t = ranges_.enter({{0, no_end}}, true);
  }
  send(std::move(rest), [](int) {});
  ranges_.start(t, [t, go = std::move(go)] { go(t); });
}

void live_file::flush(answer done) {
  after_all([self = shared_from_this(), done = std::move(done)](range_queue::ticket t) {
    self->ranges_.leave(t);
    self->jobs_.post([self, done] { done(self->publish()); });
  });
}

void live_file::sync(answer done) {
  after_all([self = shared_from_this(), done = std::move(done)](range_queue::ticket t) {
    const opened f = self->current();
    self->ranges_.leave(t);
    f->file->sync([self, done](const failure& e) {
      if (e) detail::log_error("mount: " + e.what);
      self->jobs_.post([self, done, error = error_number(e)] {
        int result = error;
        if (const int other = self->publish(); result == 0) result = other;
        try {
          self->core_->sync_entry(*self->current());
        } catch (...) {
          if (result == 0) result = error_number();
        }
        done(result);
      });
    });
  });
}

namespace {

/// Calls start(answer) and waits for the answer.
template <class Start>
int wait_for(Start start) {
  struct outcome {
    std::binary_semaphore ready{0};
    int error = 0;
  };
  const auto o = std::make_shared<outcome>();
  start([o](int error) {
    o->error = error;
    o->ready.release();
  });
  o->ready.acquire();
  return o->error;
}

}  // namespace

bool live_file::writable() const {
  const lock_guard lock(changing_);
  return writable_;
}

int live_file::flush_and_wait() {
  // Not by flush(): this may run on the thread that would publish.
  const int error = wait_for([this](answer done) {
    after_all([self = shared_from_this(), done = std::move(done)](range_queue::ticket t) {
      self->ranges_.leave(t);
      done(0);
    });
  });
  return error != 0 ? error : publish();
}

int live_file::resize(std::uint64_t size) {
  if (size > max_size) return EFBIG;
  if (is_array(*current())) return size == this->size() ? 0 : EPERM;
  range_queue::ticket t;
  (void)wait_for([&](answer done) {
    after_all([&t, done](range_queue::ticket mine) {
      t = mine;
      done(0);
    });
  });
  int error = 0;
  try {
    const lock_guard changing(changing_);
    auto next = core_->resize(*current(), size, {});
    replace(std::move(next));
    const lock_guard lock(mutex_);
    // A write that is waiting for its turn has set the size already.
    size_ = std::max(size, buffer_.file_end());
    untold_end_ = 0;
    modified_ns_ = now_ns();
  } catch (...) {
    error = error_number();
  }
  ranges_.leave(t);
  return error;
}

int live_file::allocate(std::uint64_t end, bool keep_size) {
  if (end > max_size) return EFBIG;
  {
    const lock_guard lock(mutex_);
    if (is_array(*file_)) return end <= size_ ? 0 : EFBIG;
    if (end <= allocated_size(file_->meta) && (keep_size || end <= size_)) return 0;
  }
  if (!keep_size) {
    if (const int error = grow(end, false, true)) return error;
    const lock_guard lock(mutex_);
    size_ = std::max(size_, end);
    untold_end_ = std::max(untold_end_, end);
    unpublished_.appended = false;
    modified_ns_ = now_ns();
    return 0;
  }
  try {
    const lock_guard changing(changing_);
    if (!claim_) claim_ = claim_to_write(*core_, id_, true);
    if (!claim_) return EBUSY;
    replace(core_->reserve(*current(), end, end));
    return 0;
  } catch (...) {
    return error_number();
  }
}

}  // namespace ooc::mount
