#include "iod/buffer_pool.hpp"

#include <new>

#include "storage/layout/io_part.hpp"

namespace ooc::iod {
namespace {

constexpr std::size_t sizes[] = {64 << 10, 256 << 10, storage::io_part::max_bytes};
constexpr std::size_t large = storage::io_part::max_bytes;
constexpr std::size_t small = 256 << 10;  // to be had from the reserve
constexpr std::align_val_t page{4096};

std::size_t kind_of(std::size_t bytes) noexcept { return bytes <= sizes[0] ? 0 : bytes <= sizes[1] ? 1 : 2; }

}  // namespace

buffer_pool::buffer_pool(std::uint64_t limit)
    : share_(std::make_shared<servers::fair_share>(limit < large ? large : limit, small)) {}

buffer_pool::~buffer_pool() {
  for (auto& free : free_)
    for (std::byte* p : free) ::operator delete(p, page);
}

std::size_t buffer_pool::room_of(std::size_t bytes) noexcept { return sizes[kind_of(bytes)]; }

std::uint64_t buffer_pool::unused() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t kind = 0; kind < kinds; ++kind) bytes += free_[kind].size() * sizes[kind];
  return bytes;
}

// Memory for a buffer that there is room for, or nothing where the system has none.
std::byte* buffer_pool::find(std::size_t bytes) {
  const lock_guard lock(mutex_);
  auto& mine = free_[kind_of(bytes)];
  std::byte* p = nullptr;
  if (mine.empty()) {
    // Unused buffers count too, and those are of the other sizes.
    for (auto& others : free_)
      while (!others.empty() && in_use() + unused() > limit()) {
        ::operator delete(others.back(), page);
        others.pop_back();
      }
    p = static_cast<std::byte*>(::operator new(bytes, page, std::nothrow));
  } else {
    p = mine.back();
    mine.pop_back();
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
  const lock_guard lock(mutex_);
  in_use_ -= bytes;
  free_[kind_of(bytes)].push_back(data);
}

std::uint64_t buffer_pool::held() const {
  const lock_guard lock(mutex_);
  return in_use_ + unused();
}

}  // namespace ooc::iod
