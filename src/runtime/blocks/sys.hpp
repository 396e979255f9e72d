// The system calls of the pager, raw.
//
// MPI libraries patch the libc symbols of mmap, mremap and munmap (UCX 1.13's patch drops mremap's
// fifth argument), so the pager never goes through them.  All functions are async-signal-safe.
#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace ooc::detail::sys {

/// Reserved addresses: no access, no memory, not counted against the overcommit limit.
inline constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Returns nullptr on failure (errno set).
inline std::byte* map(void* where, std::size_t bytes, int protection, int flags) noexcept {
  const long r = ::syscall(SYS_mmap, where, bytes, protection, flags, -1, 0L);
  return r == -1 ? nullptr : reinterpret_cast<std::byte*>(r);
}

inline bool unmap(void* where, std::size_t bytes) noexcept { return ::syscall(SYS_munmap, where, bytes) == 0; }

/// As map() anywhere, aligned (to a power of two of pages), with reserve_flags.
inline std::byte* map_aligned(std::size_t bytes, std::size_t alignment, int protection) noexcept {
  std::byte* const p = map(nullptr, bytes + alignment, protection, reserve_flags);
  if (!p) return nullptr;
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(p) % alignment) % alignment;
  if (before) unmap(p, before);
  unmap(p + before + bytes, alignment - before);
  return p + before;
}

/// Moves the pages of [from, from+bytes) to `to`; the mapping at `from` stays, empty.
inline bool move_pages(void* from, void* to, std::size_t bytes) noexcept {
  return ::syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != -1;
}

inline bool protect(void* where, std::size_t bytes, int protection) noexcept {
  return ::syscall(SYS_mprotect, where, bytes, protection) == 0;
}

inline bool advise(void* where, std::size_t bytes, int advice) noexcept {
  return ::syscall(SYS_madvise, where, bytes, advice) == 0;
}

/// Sleeps while `word` holds `seen`; returns at any wake-up, spurious ones included.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

inline std::uint64_t now_ns() noexcept {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace ooc::detail::sys
