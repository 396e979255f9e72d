#include "storage/chunked/blosc_memory.hpp"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#include <malloc.h>
#endif

#include <atomic>
#include <cstdio>

namespace ooc::storage {
namespace {

/// Blosc takes up to three times what it packs.
constexpr std::size_t bytes_between = 8 << 20;

bool loses_aligned_memory() noexcept {
#ifdef __GLIBC__
  int major = 0, minor = 0;
  return std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 && (major < 2 || (major == 2 && minor < 38));
#else
  return false;
#endif
}

}  // namespace

void note_blosc_call([[maybe_unused]] std::size_t bytes) noexcept {
  static const bool loses = loses_aligned_memory();
  static std::atomic<std::size_t> since{0};
  if (!loses || since.fetch_add(bytes, std::memory_order_relaxed) + bytes < bytes_between) return;
  since.store(0, std::memory_order_relaxed);
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace ooc::storage
