// Memory for chunks that is used again: new memory for each would cost as much as a fast codec, and leave holes between
// what is in use.
//
// Any thread may call.  What take() gives may outlive this.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"

namespace ooc::storage {

class chunk_buffers {
 public:
  explicit chunk_buffers(std::size_t bytes) : free_(std::make_shared<free_list>()), bytes_(bytes) {}

  /// As many bytes as were said, with any values.  Throws std::bad_alloc.
  std::shared_ptr<std::byte[]> take() {
    buffer b = free_->take();
    if (!b) b = std::make_unique_for_overwrite<std::byte[]>(bytes_);
    // If this throws, the deleter has been called.
    return {b.release(), [to = free_](std::byte* memory) { to->give(buffer(memory)); }};
  }

 private:
  using buffer = std::unique_ptr<std::byte[]>;

  class free_list {
   public:
    buffer take() {
      const lock_guard lock(mutex_);
      if (all_.empty()) return nullptr;
      buffer b = std::move(all_.back());
      all_.pop_back();
      return b;
    }
    void give(buffer b) noexcept {
      const lock_guard lock(mutex_);
      try {
        all_.push_back(std::move(b));
      } catch (const std::bad_alloc&) {  // then it is freed
      }
    }

   private:
    mutex mutex_;
    std::vector<buffer> all_ OOC_GUARDED_BY(mutex_);
  };

  const std::shared_ptr<free_list> free_;
  const std::size_t bytes_;
};

}  // namespace ooc::storage
