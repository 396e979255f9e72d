#include "iod/buffer_pool.hpp"

#include <new>

#include "storage/io_part.hpp"

namespace ooc::iod {
namespace {

constexpr std::size_t small = 64 << 10;
constexpr std::size_t large = storage::io_part::max_bytes;
constexpr std::align_val_t page{4096};

}  // namespace

buffer_pool::buffer_pool(std::uint64_t limit) : limit_(limit < large ? large : limit) {}

buffer_pool::~buffer_pool() {
  for (std::byte* p : free_small_) ::operator delete(p, page);
  for (std::byte* p : free_large_) ::operator delete(p, page);
}

std::size_t buffer_pool::room_of(std::size_t bytes) noexcept {
  return bytes <= small ? small : large;
}

std::uint64_t buffer_pool::unused() const noexcept {
  return free_small_.size() * small + free_large_.size() * large;
}

// With the mutex held: memory for a buffer that fits, or nothing where the system has none.
std::byte* buffer_pool::find(std::size_t bytes) {
  auto& free = bytes == small ? free_small_ : free_large_;
  std::byte* p = nullptr;
  if (free.empty()) {
    // What lies about unused counts too, and those are of the other size.
    auto& others = bytes == small ? free_large_ : free_small_;
    while (in_use_ + unused() + bytes > limit_) {
      ::operator delete(others.back(), page);
      others.pop_back();
    }
    p = static_cast<std::byte*>(::operator new(bytes, page, std::nothrow));
  } else {
    p = free.back();
    free.pop_back();
  }
  if (p != nullptr) in_use_ += bytes;
  return p;
}

void buffer_pool::take(std::size_t bytes, std::function<void(buffer)> ready) {
  bytes = room_of(bytes);
  std::byte* p = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() || !fits(bytes)) {
      waiting_.push_back({bytes, std::move(ready)});
      return;
    }
    p = find(bytes);
  }
  ready(buffer(shared_from_this(), p, bytes));
}

void buffer_pool::give_back(std::byte* data, std::size_t bytes) {
  std::vector<std::pair<std::function<void(buffer)>, buffer>> served;
  {
    const std::lock_guard lock(mutex_);
    in_use_ -= bytes;
    (bytes == small ? free_small_ : free_large_).push_back(data);
    while (!waiting_.empty() && fits(waiting_.front().bytes)) {
      waiter& w = waiting_.front();
      served.emplace_back(std::move(w.ready), buffer(shared_from_this(), find(w.bytes), w.bytes));
      waiting_.pop_front();
    }
  }
  for (auto& [ready, b] : served) ready(std::move(b));
}

std::uint64_t buffer_pool::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

bool buffer_pool::short_of_room() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

std::uint64_t buffer_pool::held() const {
  const std::lock_guard lock(mutex_);
  return in_use_ + unused();
}

}  // namespace ooc::iod
