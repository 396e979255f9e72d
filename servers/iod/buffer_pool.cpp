#include "iod/buffer_pool.hpp"

#include <new>

#include "storage/io_part.hpp"

namespace ooc::iod {
namespace {

constexpr std::size_t small = 64 << 10;
constexpr std::size_t large = storage::io_part::max_bytes;
constexpr std::align_val_t page{4096};

}  // namespace

buffer_pool::buffer_pool(std::uint64_t limit)
    : share_(std::make_shared<servers::fair_share>(limit < large ? large : limit, small)) {}

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

// Memory for a buffer that there is room for, or nothing where the system has none.
std::byte* buffer_pool::find(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& free = bytes == small ? free_small_ : free_large_;
  std::byte* p = nullptr;
  if (free.empty()) {
    // What lies about unused counts too, and those are of the other size.
    auto& others = bytes == small ? free_large_ : free_small_;
    while (!others.empty() && in_use() + unused() > limit()) {
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

void buffer_pool::take(client_number who, std::size_t bytes, std::function<void(buffer)> ready) {
  share_->take(who, room_of(bytes),
               [self = shared_from_this(), ready = std::move(ready)](servers::fair_share::claim c) {
                 std::byte* const p = self->find(c.amount());
                 if (p == nullptr) c = {};
                 ready(buffer(self, p, std::move(c)));
               });
}

void buffer_pool::give_back(std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  in_use_ -= bytes;
  (bytes == small ? free_small_ : free_large_).push_back(data);
}

std::uint64_t buffer_pool::held() const {
  const std::lock_guard lock(mutex_);
  return in_use_ + unused();
}

}  // namespace ooc::iod
