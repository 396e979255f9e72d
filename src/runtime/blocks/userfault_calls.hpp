// The system calls of userfaultfd, raw.
//
// Debian 12's headers are older than UFFDIO_MOVE (Linux 6.8), which is declared here.
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "storage/base/page.hpp"

namespace ooc::detail::sys {

#ifdef UFFDIO_MOVE
using userfault_move = uffdio_move;
inline constexpr unsigned long userfault_move_call = UFFDIO_MOVE;
#else
struct userfault_move {
  __u64 dst, src, len, mode;
  __s64 move;
};
inline constexpr unsigned long userfault_move_call = _IOWR(UFFDIO, 0x05, userfault_move);
#endif
inline constexpr std::uint64_t userfault_dont_wake = 1;             ///< the mode of MOVE and COPY
inline constexpr std::uint64_t userfault_feature_exact = 1u << 11;  ///< addresses of faults
inline constexpr std::uint64_t userfault_feature_move = 1u << 16;
inline constexpr unsigned long new_userfault_call = _IO(UFFDIO, 0x00);  ///< of /dev/userfaultfd

#ifdef UFFD_USER_MODE_ONLY
inline constexpr int userfault_user_mode_only = UFFD_USER_MODE_ONLY;
#else
inline constexpr int userfault_user_mode_only = 1;
#endif

/// A descriptor that sees the faults of the program only, which takes no privilege from Linux 5.11 on; below 0:
/// there is none (errno).
inline int open_userfaultfd_for_user_faults() noexcept {
  const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | userfault_user_mode_only));
  return fd >= 0 || errno != EINVAL ? fd : static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
}

inline bool userfault_call(int fd, unsigned long what, void* with) noexcept {
  return ::syscall(SYS_ioctl, fd, what, with) == 0;
}

inline __u64 address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

/// Whether the page table has something at a page: memory, or where it has been swapped out to.  True where that cannot
/// be known.
inline bool userfault_has_page(int pagemap, const std::byte* page) noexcept {
  std::uint64_t entry = 0;
  const auto at = static_cast<off_t>(address_of(page) / kernel_page_bytes() * sizeof entry);
  return ::pread(pagemap, &entry, sizeof entry, at) != sizeof entry || (entry >> 62) != 0;
}

/// Linux 6.18 forgets, once it has had to try a page again, that the attempt after that succeeded: it tries those pages
/// once more, finds them at the place they have moved to, and answers EEXIST without counting them (`err` in
/// move_pages() of mm/userfaultfd.c stays -EAGAIN).  How many bytes have moved so: they are there, and here no more.
inline std::size_t userfault_moved_unsaid(const std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return 0;
  std::size_t n = 0;
  while (n < bytes && !userfault_has_page(pagemap, from + n) && userfault_has_page(pagemap, to + n))
    n += kernel_page_bytes();
  ::close(pagemap);
  return n;
}

// The kernel answers EAGAIN while an mremap waits until its event is read, and for pages that it is
// migrating.  Who tries again calls `before_retry` first: it may be the one who reads.

/// How many bytes were moved: all of them, or as many as came before one that the kernel holds (errno).
template <class F>
std::size_t userfault_move_pages(int fd, std::byte* to, std::byte* from, std::size_t bytes, std::uint64_t mode,
                                 F before_retry) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    userfault_move m{address_of(to) + done, address_of(from) + done, bytes - done, mode, 0};
    const bool all = userfault_call(fd, userfault_move_call, &m);
    if (m.move > 0) done += static_cast<std::size_t>(m.move);
    if (all) return bytes;
    if (errno == EAGAIN) {
      if (m.move <= 0) before_retry();
      continue;
    }
    if (errno != EEXIST) return done;
    const std::size_t unsaid = userfault_moved_unsaid(to + done, from + done, bytes - done);
    errno = EEXIST;
    if (unsaid == 0) return done;
    done += unsaid;
  }
  return done;
}

/// Copies into pages that are missing; those are write-protected at once if `mode` says so.
template <class F>
bool userfault_copy(int fd, void* to, const void* from, std::size_t bytes, std::uint64_t mode,
                    F before_retry) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    uffdio_copy c{address_of(to) + done, address_of(from) + done, bytes - done, mode, 0};
    if (userfault_call(fd, UFFDIO_COPY, &c)) return true;
    if (errno != EAGAIN) return false;
    if (c.copy > 0)
      done += static_cast<std::size_t>(c.copy);
    else
      before_retry();
  }
  return true;
}

/// UFFDIO_WRITEPROTECT_MODE_WP; or UFFDIO_WRITEPROTECT_MODE_DONTWAKE to give writing back.
template <class F>
bool userfault_protect(int fd, void* where, std::size_t bytes, std::uint64_t mode, F before_retry) noexcept {
  for (;;) {
    uffdio_writeprotect w{{address_of(where), bytes}, mode};
    if (userfault_call(fd, UFFDIO_WRITEPROTECT, &w)) return true;
    if (errno != EAGAIN) return false;
    before_retry();
  }
}

inline bool userfault_register(int fd, void* where, std::size_t bytes, std::uint64_t mode) noexcept {
  uffdio_register r{{address_of(where), bytes}, mode, 0};
  return userfault_call(fd, UFFDIO_REGISTER, &r);
}

inline bool userfault_unregister(int fd, void* where, std::size_t bytes) noexcept {
  uffdio_range r{address_of(where), bytes};
  return userfault_call(fd, UFFDIO_UNREGISTER, &r);
}

inline bool userfault_wake(int fd, void* where, std::size_t bytes) noexcept {
  uffdio_range r{address_of(where), bytes};
  return userfault_call(fd, UFFDIO_WAKE, &r);
}

}  // namespace ooc::detail::sys
