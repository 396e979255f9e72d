#include "storage/node/page_cache_read.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace ooc::storage {
namespace {

bool read_cached(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
  const iovec part{to, bytes};
  const ssize_t n = ::preadv2(fd, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  return n == static_cast<ssize_t>(bytes);
}

// The checksums of chunks [first, first + n), all of them written and settled.
bool cached_checksums(const stripe_object& s, std::uint64_t first, std::uint64_t n, std::uint32_t* sums) {
  checksum_entry e[max_quick_bytes / chunk_size + 1];
  const std::uint64_t at = checksum_file::entry_offset(first);
  if (checksum_file::entry_offset(first + n - 1) != at + (n - 1) * sizeof *e) return false;
  if (!read_cached(s.sums().fd(), e, n * sizeof *e, at)) return false;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (!e[i].settled() || e[i].current == 0) return false;  // zeros on disk: lost, or never touched
    sums[i] = s.sums().seeded(first + i, e[i]).current;
    if (sums[i] == 0) return false;
  }
  return true;
}

}  // namespace

bool page_cache_read(const stripe_object& s, const io_part& part, std::byte* memory, std::uint32_t* sums) {
  constexpr std::size_t max_regions = 16;
  if (part.bytes > max_quick_bytes || part.regions.size() > max_regions || s.direct()) return false;
  for (const region& p : part.regions) {
    // Data first, then their checksums: see stripe object.hpp.
    const std::uint64_t first = p.node_offset / chunk_size;
    const std::uint64_t end = (p.node_end() + chunk_size - 1) / chunk_size;
    std::byte* const to = memory + p.memory_offset;
    if (p.node_offset % chunk_size == 0 && p.length % chunk_size == 0) {
      if (!read_cached(s.data(), to, p.length, p.node_offset)) return false;
      if (!cached_checksums(s, first, end - first, sums)) return false;
      sums += end - first;
      continue;
    }
    for (std::uint64_t c = first; c < end; ++c) {
      std::byte chunk[chunk_size];
      std::uint32_t sum = 0;
      if (!read_cached(s.data(), chunk, chunk_size, c * chunk_size)) return false;
      if (!cached_checksums(s, c, 1, &sum) || chunk_sum(chunk) != sum) return false;
      const std::uint64_t from = std::max(p.node_offset, c * chunk_size);
      const std::uint64_t stop = std::min(p.node_end(), (c + 1) * chunk_size);
      std::memcpy(to + (from - p.node_offset), chunk + from % chunk_size, stop - from);
      if (stop - from == chunk_size) *sums++ = sum;
    }
  }
  if (part.rest) *sums = rest_sum(part, memory);
  return true;
}

}  // namespace ooc::storage
