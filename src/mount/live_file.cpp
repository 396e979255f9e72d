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

namespace ooc::mount {

using storage::allocated_size;
using storage::entry_change;
using storage::open_mode;
using storage::opened_file;

namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
// Writes are answered before their bytes are in the store while fewer than these are on the way.
constexpr std::size_t most_sending = std::size_t{16} << 20;

bool is_array(const opened_file& f) { return !f.meta.array.extents.empty(); }

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

page_memory::page_memory(std::size_t n, bool zeros) : bytes(n) {
  const std::size_t whole = (std::max<std::size_t>(n, 1) + 4095) / 4096 * 4096;
  data.reset(static_cast<std::byte*>(std::aligned_alloc(4096, whole)));
  if (!data) throw std::bad_alloc();
  if (zeros) std::memset(data.get(), 0, whole);
}

/// Bytes that are on their way to the store, with their place in the queue.
struct live_file::sealed {
  page_memory memory;
  std::uint64_t at = 0;
  std::size_t bytes = 0;
  bool full = false;
  range_queue::ticket ticket;
};

live_file::opened live_file::current() const {
  const lock_guard lock(mutex_);
  return file_;
}

void live_file::replace(opened_file f) {
  auto next = std::make_shared<const opened_file>(std::move(f));
  const lock_guard lock(mutex_);
  file_ = std::move(next);
}

void live_file::open(bool write) {
  const lock_guard changing(changing_);
  const opened before = current();
  opened_file now = write && !writable_ ? core_->open(id_, open_mode::read_write)
                    : before            ? core_->refresh(*before)
                                        : core_->open(id_, open_mode::read);
  // What others write as whole blocks, one at a time, must not change behind them.
  if (write && is_array(now) && !claim_) {
    claim_ = core_->metadata().claim_writer(id_, true);
    if (!claim_)
      throw usage_error(errc::busy, "'" + now.meta.path + "' is open for writing in another program");
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

// What is past the size goes back, unless another writer has come meanwhile.
void live_file::last_writer_left() {
  if (const int error = flush_and_wait())
    detail::log_error("mount: '" + current()->meta.path + "': its size is told when it is opened next: " +
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
  const lock_guard lock(mutex_);
  if (modified_ns_) {
    e.size = std::max(e.size, size_);
    e.data_changed_ns = *modified_ns_;
  } else if (file_) {
    size_ = e.size;
  }
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

int live_file::grow(std::uint64_t end, bool stream) {
  try {
    const lock_guard changing(changing_);
    opened f = current();
    if (allocated_size(f->meta) >= end) return 0;
    if (is_array(*f)) return EFBIG;
    if (!stream || !reserve(end)) replace(core_->grow(*f, end));
    return 0;
  } catch (...) {
    return error_number();
  }
}

// False: nothing may be reserved, because somebody has the file for himself, or there is no space for that much.
bool live_file::reserve(std::uint64_t end) {
  if (!claim_) claim_ = core_->metadata().claim_writer(id_, true);
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
  entry_change c;
  {
    const lock_guard lock(mutex_);
    if (!modified_ns_) return 0;
    c.data_changed_ns = *modified_ns_;
    // Where the last bytes found no room, what came before them is there all the same.
    if (!is_array(*file_))
      c.size_at_least = std::min(lost_some_ ? std::min(stored_end_, size_) : size_, allocated_size(file_->meta));
  }
  try {
    (void)core_->change(id_, c);
  } catch (...) {
    return error_number();
  }
  const lock_guard lock(mutex_);
  if (modified_ns_ == c.data_changed_ns) modified_ns_.reset();
  return 0;
}

// Transfers.

std::shared_ptr<live_file::sealed> live_file::seal() {
  if (buffered_ == 0) return {};
  auto s = std::make_shared<sealed>();
  s->memory = std::move(buffer_);
  buffer_ = {};
  s->at = buffer_at_;
  s->bytes = std::exchange(buffered_, 0);
  s->full = s->bytes == buffer_bytes;
  s->ticket = ranges_.enter(s->at, s->at + s->bytes, true);
  sending_ += s->bytes;
  return s;
}

void live_file::store(std::shared_ptr<sealed> s, answer ended, bool again) {
  try {
    current()->file->write(
        std::make_shared<const request>(request::contiguous(s->at, s->bytes)), s->memory.data.get(),
        [self = shared_from_this(), s, ended, again](const failure& f) {
          if (f.code == std::errc::no_space_on_device && !again)  // that of removed files may be enough
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

void live_file::send(std::shared_ptr<sealed> s, answer done) {
  if (!s) return done(0);
  const auto ended = [self = shared_from_this(), s, done](int error) {
    {
      const lock_guard lock(self->mutex_);
      self->sending_ -= s->bytes;
      if (error != 0)
        self->lost_some_ = true;
      else
        self->stored_end_ = std::max(self->stored_end_, s->at + s->bytes);
    }
    if (error != 0) self->fail(error);
    self->ranges_.leave(s->ticket);
    done(error);
  };
  if (const int error = grow(s->at + s->bytes, s->full)) return ended(error);
  ranges_.start(s->ticket, [self = shared_from_this(), s, ended] {
    if (s->at + s->bytes <= allocated_size(self->current()->meta)) return self->store(s, ended);
    // It was cut off while this waited for its turn.
    self->jobs_.post([self, s, ended] {
      if (const int error = self->grow(s->at + s->bytes, false)) return ended(error);
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
    if (buffered_ != 0 && (through || offset != buffer_at_ + buffered_)) full.push_back(seal());
    try {
      while (!bytes.empty()) {
        if (!buffer_.data) buffer_ = page_memory(buffer_bytes, false);
        if (buffered_ == 0) buffer_at_ = offset;
        const std::size_t n = std::min(bytes.size(), buffer_bytes - buffered_);
        std::memcpy(buffer_.data.get() + buffered_, bytes.data(), n);
        buffered_ += n;
        offset += n;
        bytes = bytes.subspan(n);
        if (buffered_ == buffer_bytes || (through && bytes.empty())) full.push_back(seal());
      }
    } catch (const std::bad_alloc&) {
      no_memory = true;  // what was sealed is sent all the same: others wait behind it
    }
    size_ = std::max(size_, offset);
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
  done(0);
}

void live_file::read(std::uint64_t offset, std::size_t length, read_answer done) {
  std::shared_ptr<sealed> here;
  std::uint64_t end = 0;
  bool longer = false;
  {
    const lock_guard lock(mutex_);
    end = std::min<std::uint64_t>(size_, offset > max_size - length ? max_size : offset + length);
    if (offset >= end) end = offset;
    if (buffered_ != 0 && buffer_at_ < end && offset < buffer_at_ + buffered_) here = seal();
    longer = end > allocated_size(file_->meta) && !modified_ns_;
  }
  if (here) send(std::move(here), [](int) {});
  if (offset == end) return done(0, {});
  if (longer) {  // another has made it longer
    const lock_guard changing(changing_);
    replace(core_->refresh(*current()));
  }
  const auto t = ranges_.enter(offset, end, false);
  ranges_.start(t, [self = shared_from_this(), t, offset, end, done = std::move(done)] {
    const auto ended = [self, t, done](int error, std::span<const std::byte> bytes) {
      self->ranges_.leave(t);
      done(error, bytes);
    };
    try {
      const opened f = self->current();
      // Between what is stored and what was written past it there is nothing yet.
      const std::uint64_t stored = std::min(end, allocated_size(f->meta));
      auto memory = std::make_shared<page_memory>(end - offset, true);
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
    t = ranges_.enter(0, no_end, true);
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
    size_ = buffered_ != 0 ? std::max(size, buffer_at_ + buffered_) : size;
    stored_end_ = size;
    lost_some_ = false;
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
    if (const int error = grow(end, false)) return error;
    const lock_guard lock(mutex_);
    size_ = std::max(size_, end);
    stored_end_ = std::max(stored_end_, end);
    modified_ns_ = now_ns();
    return 0;
  }
  try {
    const lock_guard changing(changing_);
    if (!claim_) claim_ = core_->metadata().claim_writer(id_, true);
    if (!claim_) return EBUSY;
    replace(core_->reserve(*current(), end, end));
    return 0;
  } catch (...) {
    return error_number();
  }
}

}  // namespace ooc::mount
