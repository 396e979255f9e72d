// Reading array memory behind ThreadSanitizer's back.
//
// The pager keeps writers of a block out by taking their access away, an order that the sanitizer
// cannot see: it would report a race with whatever thread wrote last. These functions, and no
// others, are exempt. Element writes beside them are either excluded in that way or, for pinned
// blocks, allowed by contract to be seen or not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ooc::detail {

/// `bytes` is a multiple of 8, and so are the addresses.
__attribute__((no_sanitize("thread"))) inline void copy_untracked(std::byte* to, const std::byte* from,
                                                                  std::size_t bytes) noexcept {
  auto* t = reinterpret_cast<std::uint64_t*>(to);
  const auto* f = reinterpret_cast<const volatile std::uint64_t*>(from);
  for (std::size_t i = 0; i < bytes / sizeof *t; ++i) t[i] = f[i];
}

__attribute__((no_sanitize("thread"))) inline bool equal_untracked(const std::byte* a, const std::byte* b,
                                                                   std::size_t bytes) noexcept {
  for (; bytes >= 8; a += 8, b += 8, bytes -= 8) {
    std::uint64_t x, y;
    __builtin_memcpy(&x, a, 8);
    __builtin_memcpy(&y, b, 8);
    if (x != y) return false;
  }
  for (std::size_t i = 0; i < bytes; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// Reads one byte.
__attribute__((no_sanitize("thread"))) inline void touch_untracked(const std::byte* p) noexcept {
  static_cast<void>(*static_cast<const volatile std::byte*>(p));
}

/// One byte.
__attribute__((no_sanitize("thread"))) inline void complement_untracked(std::byte* to, const std::byte* from) noexcept {
  *to = ~*from;
}

}  // namespace ooc::detail
