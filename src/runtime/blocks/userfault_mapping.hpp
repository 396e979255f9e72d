// Blocks that are mapped by userfaultfd: who touches what is not there, a system call too, sleeps in the
// kernel until a thread of the runtime has served it.
//
// Addresses of blocks are registered for missing pages and for write protection, and are readable and
// writable otherwise: whether a page is there, and is write-protected, says what may be done to it.
// Frames are registered too, as UFFDIO_MOVE wants of the place that it moves to, for write protection
// only: what is missing there is zeros, as in any memory.
//
// How a block comes in, always without a moment in which a write would go unnoticed:
//   - for writing (it is dirty then), and of a segment that nobody may write to: UFFDIO_MOVE, in the
//     latter case with a write protection that catches faults of the program;
//   - for reading, a small block: UFFDIO_COPY, which protects the pages that it makes;
//   - for reading, a large one: the *frame* is write-protected, and mremap brings pages and protection over at once.
//     UFFDIO_MOVE cannot: its pages are writable until they are protected.  The kernel holds mremap up
//     until somebody has read its event: about_to_wait() sees to it that one can.
// It leaves by UFFDIO_MOVE, which fails while the kernel holds a page for a transfer.  The mapping that
// mremap has left at the block is replaced by a piece of the reservation when there are many of them.
//
// Nothing here wakes who waits for a block: that is for who serves the touch, when the block's new state
// has been published.
//
// A touch that is to be refused is *fenced*: an mprotect of its page turns it into SIGSEGV, or into
// EFAULT of a system call.  The fence is lifted before the block moves.
//
// Locks: `mutex_` guards the fences and the patches; nothing is called with it but mprotect and mremap.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/wake_log.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class userfault_mapping final : public block_mapping {
 public:
  /// nullptr, and why, where the kernel or its settings do not allow it.
  static std::unique_ptr<userfault_mapping> open(std::string& why_not);
  ~userfault_mapping() override;

  int descriptor() const noexcept { return fd_; }
  /// System calls may touch blocks; otherwise they fail with EFAULT where those are not in memory.
  bool serves_system_calls() const noexcept { return serves_system_calls_; }
  /// The function that about_to_wait() calls.
  void before_waits(std::function<void()> f) { before_waits_ = std::move(f); }

  /// Lets touches of a page, or writes to it, be refused; wakes who waits there.
  void fence(std::byte* page, bool writes_only) noexcept;
  /// Lifts what fences there are in [where, where + bytes); false where there is none.
  bool lift_fences(std::byte* where, std::size_t bytes) noexcept;
  /// The threads that wait in the page try again.
  void wake(std::byte* page) noexcept;
  const wake_log& wakes() const noexcept { return wakes_; }

  void add_frames(std::byte* region, std::size_t bytes) override;
  void open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) override;
  void close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept override;
  void map_in(frame* f, bool writable) noexcept override;
  bool map_out(frame* f, block_access has) noexcept override;
  void set_access(frame* f, block_access to) noexcept override;
  void discard(frame* f) noexcept override;
  bool moves_out_to_age() const noexcept override { return true; }
  void about_to_wait() noexcept override {
    if (before_waits_) before_waits_();
  }
  /// `asked`: wakes().now() before the touch was read.
  bool has_gone_on(const std::byte* where, std::uint64_t asked) const noexcept override {
    return wakes_.woken_since(where, asked);
  }

 private:
  userfault_mapping(int fd, bool serves_system_calls);
  void try_again() noexcept;
  std::size_t move_pages(std::byte* from, std::byte* to, std::size_t bytes) noexcept;
  void move_frame(std::byte* from, std::byte* to, std::size_t bytes) noexcept;
  bool protect(std::byte* where, std::size_t bytes, block_access to) noexcept;
  void back_with_memory(frame* f) noexcept;
  void copy_protected(frame* f, std::size_t bytes) noexcept;
  void note_patch(std::byte* block) noexcept;
  void mend_patch(std::byte* block, std::size_t bytes) noexcept;

  const int fd_;
  const bool serves_system_calls_;
  const std::size_t most_patches_;
  std::function<void()> before_waits_;
  wake_log wakes_;
  ooc::mutex mutex_;
  std::vector<std::byte*> fences_ OOC_GUARDED_BY(mutex_);
  std::atomic<std::size_t> fence_count_{0};
  /// Blocks whose addresses are a mapping of their own.
  std::unordered_set<std::byte*> patches_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
