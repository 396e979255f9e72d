// Gives the pages at many addresses of this process back to the system, with as few interruptions of the other
// processors as the kernel allows.
//
// Each madvise(MADV_DONTNEED) waits until all processors that run a thread of the process have forgotten the
// address.  That costs more than all else where it is about 4 KiB.  From Linux 6.13 on a process may give a list
// of addresses (process_madvise), and from 6.16 on they are forgotten together.  Before, each is given by itself.
//
// Thread-safe, async-signal-safe.
#pragma once

#include <cstddef>
#include <span>

namespace ooc::detail {

class page_dropper {
 public:
  static constexpr std::size_t most_together = 64;

  /// Asks the kernel whether it takes lists.
  page_dropper() noexcept;
  ~page_dropper();
  page_dropper(const page_dropper&) = delete;
  page_dropper& operator=(const page_dropper&) = delete;

  /// At most `most_together` addresses, of `bytes` each.  False where the kernel refuses (errno).
  bool drop(std::span<std::byte* const> where, std::size_t bytes) const noexcept;

 private:
  int self_ = -1;  ///< a pidfd of this process; below 0: no lists
};

}  // namespace ooc::detail
