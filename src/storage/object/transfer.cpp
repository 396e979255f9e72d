// The common part of the two engines of transfers, and the engine without a ring.
#include "storage/object/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "storage/object/uring_engine.hpp"

namespace ooc::storage {
namespace {

class plain_engine final : public transfer_engine {
 public:
  void run(int fd, direction d, transfer_list& list) override {
    for (transfer& t : list.extents) {
      while (!t.complete()) {
        // continue_transfer() leaves the unfinished regions of memory at [first, first + count).
        const iovec* v = list.memory.data() + t.first;
        const auto at = static_cast<off_t>(t.offset + t.done);
        const auto n = static_cast<int>(t.count);
        const ssize_t r = d == direction::read ? ::preadv(fd, v, n, at) : ::pwritev(fd, v, n, at);
        if (!continue_transfer(t, list.memory, d, r < 0 ? -errno : r)) break;
      }
    }
  }
};

}  // namespace

void transfer_list::add(std::uint64_t offset, std::byte* at, std::uint64_t bytes) {
  while (bytes > 0) {
    transfer* t = extents.empty() ? nullptr : &extents.back();
    if (t == nullptr || end() != offset || t->bytes == max_bytes || t->count == max_regions) {
      extents.push_back({offset, 0, 0, static_cast<std::uint32_t>(memory.size()), 0, 0});
      t = &extents.back();
    }
    const std::uint64_t n = std::min(bytes, max_bytes - t->bytes);
    iovec* last = t->count > 0 ? &memory.back() : nullptr;
    if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == at) {
      last->iov_len += n;
    } else {
      memory.push_back({at, n});
      ++t->count;
    }
    t->bytes += n;
    offset += n;
    at += n;
    bytes -= n;
  }
}

bool continue_transfer(transfer& t, std::span<iovec> memory, direction d, long result) noexcept {
  if (result == -EINTR) return true;
  if (result == -EAGAIN) {
    std::this_thread::yield();
    return true;
  }
  if (result < 0) {
    t.error = static_cast<int>(-result);
    return false;
  }
  if (result == 0 && d == direction::write) {
    t.error = EIO;
    return false;
  }
  t.done += static_cast<std::uint64_t>(result);
  // Step over what has been transferred.
  auto left = static_cast<std::size_t>(result);
  while (t.count > 0 && left >= memory[t.first].iov_len) {
    left -= memory[t.first].iov_len;
    ++t.first;
    --t.count;
  }
  if (t.count > 0) {
    iovec& v = memory[t.first];
    v.iov_base = static_cast<std::byte*>(v.iov_base) + left;
    v.iov_len -= left;
  }
  if (t.count > 0 && result == 0) {
    for (; t.count > 0; ++t.first, --t.count) std::memset(memory[t.first].iov_base, 0, memory[t.first].iov_len);
    t.done = t.bytes;
  }
  return t.count > 0;
}

std::unique_ptr<transfer_engine> make_transfer_engine(bool io_uring) {
  if (io_uring)
    if (auto ring = make_uring_engine()) return ring;
  return make_plain_engine();
}

std::unique_ptr<transfer_engine> make_plain_engine() { return std::make_unique<plain_engine>(); }

}  // namespace ooc::storage
