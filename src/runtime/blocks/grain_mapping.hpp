// Grains come to the address of their block by userfaultfd, in the thread that touches them.
//
// The addresses of a segment with grains are registered for missing pages and for write protection, and
// are readable and writable otherwise; the registration turns a touch of what is missing, or a write to
// what is protected, into SIGBUS in the thread that made it (UFFD_FEATURE_SIGBUS).  A kernel thread or
// system call gets EFAULT, as with blocks that are mapped by signals.  So no privilege is needed
// (UFFD_USER_MODE_ONLY, Linux 5.11), and no other thread.
//
// A grain comes in by UFFDIO_COPY, which makes the page and its write protection in one step.  It leaves
// by a copy as well: it is write-protected first, so nobody changes it meanwhile, and dropped last.  That
// costs less for 4 KiB than moving the page does (docs/decisions/0025-grains.md).
//
// Where blocks are mapped by signals, their pages replace the registered addresses while they are
// mapped; reopen() puts these back.
#pragma once

#include <memory>
#include <string>

#include "runtime/blocks/block_mapping.hpp"

namespace ooc::detail {

class grain_mapping final : public block_mapping {
 public:
  /// nullptr, and why, where the kernel or its settings do not allow it.
  static std::unique_ptr<grain_mapping> open(std::string& why_not);
  ~grain_mapping() override;

  /// Replaces what is mapped at an address of a segment with grains by missing pages; who touches one
  /// meanwhile gets a signal.
  void reopen(std::byte* where, std::size_t bytes) noexcept;

  void add_frames(std::byte*, std::size_t) override {}
  void open_range(const segment_state& s, std::uint64_t from, std::uint64_t to) override;
  void close_range(const segment_state& s, std::uint64_t from, std::uint64_t to) noexcept override;
  void map_in(frame* f, bool writable) noexcept override;
  bool map_out(frame* f, block_access has) noexcept override;
  void set_access(frame* f, block_access to) noexcept override;
  void discard(frame* f) noexcept override;
  bool moves_out_to_age() const noexcept override { return true; }

 private:
  explicit grain_mapping(int fd) noexcept : fd_(fd) {}

  const int fd_;
};

}  // namespace ooc::detail
