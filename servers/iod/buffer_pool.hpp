// Memory for transfers, bounded: what clients send or want waits until there is room.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace ooc::iod {

class buffer_pool : public std::enable_shared_from_this<buffer_pool> {
 public:
  /// A page-aligned piece of memory that goes back to its pool.
  class buffer {
   public:
    buffer() = default;
    buffer(std::shared_ptr<buffer_pool> pool, std::byte* data, std::size_t bytes)
        : pool_(std::move(pool)), data_(data), bytes_(bytes) {}
    buffer(buffer&& o) noexcept { swap(o); }
    buffer& operator=(buffer&& o) noexcept {
      buffer(std::move(o)).swap(*this);
      return *this;
    }
    ~buffer() {
      if (data_ != nullptr) pool_->give_back(data_, bytes_);
    }

    std::byte* data() const noexcept { return data_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

   private:
    void swap(buffer& o) noexcept {
      pool_.swap(o.pool_);
      std::swap(data_, o.data_);
      std::swap(bytes_, o.bytes_);
    }

    std::shared_ptr<buffer_pool> pool_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// `limit`: bytes of all buffers, those kept for later use included; at least the largest.
  explicit buffer_pool(std::uint64_t limit);
  ~buffer_pool();

  /// Calls `ready` with a buffer of at least `bytes` (at most io_part::max_bytes), at once or when
  /// others have come back, or with an empty one where the system has no memory; first come, first
  /// served.
  void take(std::size_t bytes, std::function<void(buffer)> ready);
  /// What a buffer of at least `bytes` takes of the limit.
  static std::size_t room_of(std::size_t bytes) noexcept;

  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t in_use() const;
  /// Bytes of memory that the pool has of the system: those in use and those kept for later use.
  std::uint64_t held() const;
  /// True while somebody waits for a buffer.
  bool short_of_room() const;

 private:
  struct waiter {
    std::size_t bytes;
    std::function<void(buffer)> ready;
  };

  bool fits(std::size_t bytes) const noexcept { return in_use_ + bytes <= limit_; }
  std::uint64_t unused() const noexcept;
  std::byte* find(std::size_t bytes);
  void give_back(std::byte* data, std::size_t bytes);

  const std::uint64_t limit_;
  mutable std::mutex mutex_;
  std::uint64_t in_use_ = 0;
  std::deque<waiter> waiting_;
  std::vector<std::byte*> free_small_, free_large_;
};

}  // namespace ooc::iod
