#include "storage/node/small_reads.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "storage/object/sides.hpp"

namespace ooc::storage {
namespace {

constexpr int cached = RWF_NOWAIT;
constexpr int wherever = 0;

bool read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset, int which) noexcept {
  const iovec part{to, bytes};
  const ssize_t n = ::preadv2(fd, &part, 1, static_cast<off_t>(offset), which);
  return n == static_cast<ssize_t>(bytes);
}

// The place of the first of those chunks, where all are one after another.
bool together(stripe_object& s, std::uint64_t first, std::uint64_t n, std::uint64_t& place, int which) noexcept {
  place = first;
  if (!s.sides()) return true;
  const std::uint64_t region = first / checksum_file::region_chunks;
  side_bits bits;
  bool there = false;
  if ((first + n - 1) / checksum_file::region_chunks != region) return false;
  if (s.sides().file().read_present(region, bits, there, which) != 0 || !there) return false;
  for (std::uint64_t i = 1; i < n; ++i)
    if (side_of(bits, first + i) != side_of(bits, first)) return false;
  place = place_of(first, side_of(bits, first));
  return true;
}

// The checksums of chunks [first, first + n), all of them written and settled.
bool settled_checksums(const stripe_object& s, std::uint64_t first, std::uint64_t n, std::uint32_t* sums,
                       int which) noexcept {
  checksum_entry e[max_quick_bytes / chunk_size + 1];
  const std::uint64_t at = checksum_file::entry_offset(first);
  if (checksum_file::entry_offset(first + n - 1) != at + (n - 1) * sizeof *e) return false;
  if (!read_at(s.sums().fd(), e, n * sizeof *e, at, which)) return false;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (!e[i].settled() || e[i].current == 0) return false;  // zeros on disk: lost, or never touched
    sums[i] = s.sums().seeded(first + i, e[i]).current;
    if (sums[i] == 0) return false;
  }
  return true;
}

}  // namespace

bool page_cache_read(stripe_object& s, const io_part& part, std::byte* memory, std::uint32_t* sums) {
  constexpr std::size_t max_regions = 16;
  if (part.bytes > max_quick_bytes || part.regions.size() > max_regions || s.direct()) return false;
  for (const region& p : part.regions) {
    // Data first, then their checksums: see stripe object.hpp.
    const std::uint64_t first = p.node_offset / chunk_size;
    const std::uint64_t end = (p.node_end() + chunk_size - 1) / chunk_size;
    std::byte* const to = memory + p.memory_offset;
    std::uint64_t place = 0;
    if (!together(s, first, end - first, place, cached)) return false;
    if (p.node_offset % chunk_size == 0 && p.length % chunk_size == 0) {
      if (!read_at(s.data(), to, p.length, place * chunk_size, cached)) return false;
      if (!settled_checksums(s, place, end - first, sums, cached)) return false;
      sums += end - first;
      continue;
    }
    for (std::uint64_t c = first; c < end; ++c) {
      std::byte chunk[chunk_size];
      std::uint32_t sum = 0;
      const std::uint64_t at = place + (c - first);
      if (!read_at(s.data(), chunk, chunk_size, at * chunk_size, cached)) return false;
      if (!settled_checksums(s, at, 1, &sum, cached) || chunk_sum(chunk) != sum) return false;
      const std::uint64_t from = std::max(p.node_offset, c * chunk_size);
      const std::uint64_t stop = std::min(p.node_end(), (c + 1) * chunk_size);
      std::memcpy(to + (from - p.node_offset), chunk + from % chunk_size, stop - from);
      if (stop - from == chunk_size) *sums++ = sum;
    }
  }
  if (part.rest) *sums = rest_sum(part, memory);
  return true;
}

bool read_whole_chunks(stripe_object& s, std::uint64_t node_offset, std::byte* memory, std::size_t bytes) noexcept {
  std::uint32_t sums[max_quick_bytes / chunk_size];
  const std::uint64_t first = node_offset / chunk_size, n = bytes / chunk_size;
  if (node_offset % chunk_size != 0 || bytes % chunk_size != 0 || n == 0 || bytes > max_quick_bytes) return false;
  std::uint64_t place = 0;
  if (!together(s, first, n, place, wherever)) return false;
  // Data first, then their checksums: see stripe_object.hpp.
  if (!read_at(s.data(), memory, bytes, place * chunk_size, wherever)) return false;
  if (!settled_checksums(s, place, n, sums, wherever)) return false;
  for (std::uint64_t i = 0; i < n; ++i)
    if (chunk_sum(memory + i * chunk_size) != sums[i]) return false;
  return true;
}

}  // namespace ooc::storage
