#include "storage/object/range_locks.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <thread>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {
namespace {

using namespace std::chrono_literals;

constexpr auto undisturbed = 50ms;
constexpr auto pause_after_yielding = 500us;

constexpr std::uint64_t whole_object = 0;  // the first of all lock bytes
constexpr std::uint64_t chunks_per_region = range_locks::region_bytes / chunk_size;

std::uint64_t lock_byte(std::uint64_t region) { return region + 1; }

// The byte by which a process says that it waits for lock `byte`.
std::uint64_t waiting_byte(std::uint64_t byte) { return (std::uint64_t{1} << 61) + byte; }

struct flock one_byte(std::uint64_t byte, short type) {
  struct flock l {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  l.l_start = static_cast<off_t>(byte);
  l.l_len = 1;
  return l;
}

int set_lock(int fd, int command, std::uint64_t byte, short type) {
  struct flock l = one_byte(byte, type);
  while (::fcntl(fd, command, &l) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

}  // namespace

range_locks::hold::~hold() {
  if (owner_ == nullptr) return;
  for (auto byte = held_.rbegin(); byte != held_.rend(); ++byte) owner_->release(*byte);
}

int range_locks::lock_chunks(const std::vector<chunk_range>& chunks, hold& h) {
  h.owner_ = this;
  h.held_.reserve(16);  // what was taken and cannot be noted would never be given back
  if (const int e = acquire(whole_object, F_RDLCK)) return e;
  h.held_.push_back(whole_object);
  for (const chunk_range& c : chunks) {
    if (c.first >= c.end) continue;
    const std::uint64_t end = lock_byte((c.end - 1) / chunks_per_region) + 1;
    for (std::uint64_t b = std::max(lock_byte(c.first / chunks_per_region), h.held_.back() + 1); b < end; ++b) {
      assert(b > h.held_.back());  // the order in which everybody waits
      if (h.held_.size() == h.held_.capacity()) h.held_.reserve(2 * h.held_.size());
      if (const int e = acquire(b, shared_ ? F_RDLCK : F_WRLCK)) return e;
      h.held_.push_back(b);
    }
  }
  return 0;
}

int range_locks::lock_object(hold& h) {
  assert(h.held_.empty());
  h.owner_ = this;
  h.held_.reserve(1);
  if (const int e = acquire(whole_object, F_WRLCK)) return e;
  h.held_.push_back(whole_object);
  return 0;
}

int range_locks::acquire(std::uint64_t byte, short type) {
  unique_lock lock(mutex_);
  for (;;) {
    state& s = states_[byte];  // a map: stays where it is while others come and go
    if (s.holders > 0 && (std::chrono::steady_clock::now() - s.since < undisturbed || !wanted_elsewhere(byte))) {
      ++s.holders;
      return 0;
    }
    if (s.holders == 0 && !s.busy) {
      s.busy = true;
      const bool pause = std::exchange(s.yielded, false);
      lock.unlock();
      if (pause) std::this_thread::sleep_for(pause_after_yielding);
      const int e = take(byte, type);
      lock.lock();
      s.busy = false;
      if (e == 0) {
        s.holders = 1;
        s.since = std::chrono::steady_clock::now();
      }
      changed_.notify_all();
      return e;
    }
    if (s.holders > 0) s.yielded = true;
    changed_.wait(lock);
  }
}

int range_locks::take(std::uint64_t byte, short type) const {
  const int e = set_lock(fd_, F_OFD_SETLK, byte, type);
  if (e != EAGAIN && e != EACCES) return e;
  set_lock(fd_, F_OFD_SETLK, waiting_byte(byte), F_RDLCK);
  const int waited = set_lock(fd_, F_OFD_SETLKW, byte, type);
  set_lock(fd_, F_OFD_SETLK, waiting_byte(byte), F_UNLCK);
  return waited;
}

bool range_locks::wanted_elsewhere(std::uint64_t byte) const {
  struct flock l = one_byte(waiting_byte(byte), F_WRLCK);
  return ::fcntl(fd_, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

void range_locks::release(std::uint64_t byte) {
  lock_guard lock(mutex_);
  const auto s = states_.find(byte);
  assert(s != states_.end() && s->second.holders > 0);
  if (--s->second.holders > 0) return;
  set_lock(fd_, F_OFD_SETLK, byte, F_UNLCK);
  if (s->second.yielded)
    changed_.notify_all();
  else
    states_.erase(s);
}

}  // namespace ooc::storage
