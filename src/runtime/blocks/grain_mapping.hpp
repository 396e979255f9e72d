// Grains come to the address of their block by userfaultfd, in the thread that touches them.
//
// The addresses of a segment with grains are registered for missing pages and for write protection, and
// are readable and writable otherwise; the registration turns a touch of what is missing, or a write to
// what is protected, into SIGBUS in the thread that made it (UFFD_FEATURE_SIGBUS).  A kernel thread or
// system call gets EFAULT, as with blocks that are mapped by signals.  So no privilege is needed
// (UFFD_USER_MODE_ONLY, Linux 5.11), and no other thread.
//
// A grain comes in by UFFDIO_COPY, which makes the page and its write protection in one step.  It leaves
// by a copy as well: it is write-protected first, so nobody changes it meanwhile, and dropped last, with others
// where many leave (page_dropper.hpp).  That costs less for 4 KiB than moving the page does
// (docs/decisions/0025-grains.md).
//
// A grain that has come in leaves its frame's slot with a page in it, and one that goes needs such a slot.  Giving
// the page back and having another made takes a system call that interrupts the other processors.  So some slots
// with pages are kept (`spares_`): a frame changes its slot for one of them.  They take a 64th of the budget beside
// it, at least 256 KiB and at most 2 MiB.
//
// Where blocks are mapped by signals, their pages replace the registered addresses while they are
// mapped; reopen() puts these back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/page_dropper.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class grain_mapping final : public block_mapping {
 public:
  /// nullptr, and why, where the kernel or its settings do not allow it.
  static std::unique_ptr<grain_mapping> open(std::uint64_t budget, std::string& why_not);
  ~grain_mapping() override;

  /// Replaces what is mapped at an address of a segment with grains by missing pages; who touches one
  /// meanwhile gets a signal.
  void reopen(std::byte* where, std::size_t bytes) noexcept;

  void add_frames(std::byte*, std::size_t) override {}
  void open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) override;
  void close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept override;
  void before_load(frame* f) noexcept override;
  void map_in(frame* f, bool writable) noexcept override;
  bool map_out(frame* f, block_access has) noexcept override;
  void map_out_together(std::span<frame* const> frames, std::span<const block_access> has) noexcept override;
  std::size_t worth_together() const noexcept override { return page_dropper::most_together; }
  void set_access(frame* f, block_access to) noexcept override;
  void discard(frame* f) noexcept override;
  void give_up_page_tables(std::byte* where, std::size_t bytes) noexcept override;
  bool moves_out_to_age() const noexcept override { return true; }

 private:
  /// Slots without an owner: the first `backed` have a page.
  struct spare_slots {
    std::vector<std::byte*> all;
    std::size_t backed = 0;
  };

  grain_mapping(int fd, std::byte* slots, std::size_t count);
  void take_page(frame* f) noexcept;
  /// To its slot; nobody changes it meanwhile.
  void copy_out(frame* f) noexcept;
  static std::size_t protected_together(std::span<frame* const> frames, std::span<const block_access> has) noexcept;
  void protect(std::byte* from, std::byte* to, block_access left) noexcept;

  const int fd_;
  const page_dropper dropper_;
  std::byte* const slots_;
  mutex mutex_;  ///< fault handlers take it: whoever holds it touches no array
  spare_slots spares_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::detail
