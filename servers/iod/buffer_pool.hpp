// Memory for transfers, bounded and shared by the clients: what they send or want waits until there is
// room in their shares (fair_share).
//
// Invariant: the buffers in use and those kept for later use are at most limit() together, but for a
// limit that is less than the largest buffer.  One mutex; that of the share is taken
// under it (in_use()), never the other way round.  Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/fair_share.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::iod {

using storage::client_number;

class buffer_pool : public std::enable_shared_from_this<buffer_pool> {
 public:
  /// A page-aligned region of memory that goes back to its pool.
  class buffer {
   public:
    buffer() = default;
    buffer(std::shared_ptr<buffer_pool> pool, std::byte* data, servers::fair_share::claim claim)
        : claim_(std::move(claim)), pool_(std::move(pool)), data_(data) {}
    buffer(buffer&& o) noexcept { swap(o); }
    buffer& operator=(buffer&& o) noexcept {
      buffer(std::move(o)).swap(*this);
      return *this;
    }
    ~buffer() {
      // Before the claim goes, which lets another look for a buffer.
      if (data_ != nullptr) pool_->give_back(data_, claim_.amount());
    }

    std::byte* data() const noexcept { return data_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

   private:
    void swap(buffer& o) noexcept {
      std::swap(claim_, o.claim_);
      pool_.swap(o.pool_);
      std::swap(data_, o.data_);
    }

    servers::fair_share::claim claim_;
    std::shared_ptr<buffer_pool> pool_;
    std::byte* data_ = nullptr;
  };

  /// `limit`: bytes of all buffers, those kept for later use included; at least the largest.
  explicit buffer_pool(std::uint64_t limit);
  ~buffer_pool();

  /// Calls `ready` with a buffer of at least `bytes` (at most io_part::max_bytes), at once or when
  /// others have come back, or with an empty one where the system has no memory.
  void take(client_number who, std::size_t bytes, std::function<void(buffer)> ready);
  /// Room in the limit for memory that is not the pool's, if there is some at once.
  servers::fair_share::claim try_room(client_number who, std::size_t bytes) { return share_->try_take(who, bytes); }
  /// Bytes of the limit that a buffer of at least `bytes` takes.
  static std::size_t room_of(std::size_t bytes) noexcept;

  std::uint64_t limit() const noexcept { return share_->limit(); }
  std::uint64_t in_use() const { return share_->held(); }
  std::uint64_t in_use_by(client_number who) const { return share_->held_by(who); }
  /// Bytes of memory that the pool has of the system: those in use and those kept for later use.
  std::uint64_t held() const;
  /// True while somebody waits for a buffer.
  bool short_of_room() const { return share_->short_of(); }

 private:
  static constexpr std::size_t kinds = 3;  // of sizes

  std::uint64_t unused() const noexcept OOC_REQUIRES(mutex_);
  std::byte* find(std::size_t bytes) OOC_EXCLUDES(mutex_);
  void give_back(std::byte* data, std::size_t bytes) OOC_EXCLUDES(mutex_);

  const std::shared_ptr<servers::fair_share> share_;
  mutable mutex mutex_;
  std::uint64_t in_use_ OOC_GUARDED_BY(mutex_) = 0;
  std::array<std::vector<std::byte*>, kinds> free_ OOC_GUARDED_BY(mutex_);  // by kind
};

}  // namespace ooc::iod
