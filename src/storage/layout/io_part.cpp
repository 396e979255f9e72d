#include "storage/layout/io_part.hpp"

#include <algorithm>

#include "storage/layout/crc32c.hpp"

namespace ooc::storage {

io_part part_cutter::next() {
  io_part part;
  while (!at_end() && part.bytes < io_part::max_bytes && part.regions.size() < io_part::max_regions) {
    const region& whole = regions_[next_];
    region p{whole.node_offset + taken_, whole.memory_offset + taken_, whole.length - taken_};
    const std::uint64_t room = io_part::max_bytes - part.bytes;
    if (p.length > room) {
      const std::uint64_t end = (p.node_offset + room) / chunk_size * chunk_size;
      if (end <= p.node_offset) break;  // less than a chunk is left: the next part begins with it
      p.length = end - p.node_offset;
    }
    part.regions.push_back(p);
    part.bytes += p.length;
    taken_ += p.length;
    if (taken_ == whole.length) {
      ++next_;
      taken_ = 0;
    }
  }
  for_each_chunk(
      part, [&](std::uint64_t, std::uint64_t) { ++part.whole; },
      [&](std::uint64_t, std::uint64_t) { part.rest = true; });
  return part;
}

std::vector<byte_range> even_ranges(std::span<const region> regions, std::size_t n, std::uint64_t least) {
  std::uint64_t total = 0;
  for (const region& p : regions) total += p.length;
  n = std::clamp<std::uint64_t>(total / least, 1, n);
  std::vector<byte_range> ranges{{}};
  std::uint64_t before = 0;  // bytes of earlier regions
  std::size_t i = 1;
  for (const region& p : regions) {
    for (; i < n && total / n * i < before + p.length; ++i) {
      const std::uint64_t chunk = (p.node_offset + total / n * i - before) / chunk_size * chunk_size;
      const std::uint64_t at = before + (chunk > p.node_offset ? chunk - p.node_offset : 0);
      if (at == ranges.back().first) continue;
      ranges.back().count = at - ranges.back().first;
      ranges.push_back({at, 0});
    }
    before += p.length;
  }
  if (ranges.size() > 1) ranges.back().count = total - ranges.back().first;
  return ranges;
}

io_part packed(io_part p) {
  std::uint64_t at = 0;
  for (region& one : p.regions) {
    one.memory_offset = at;
    at += one.length;
  }
  return p;
}

void compute_sums(const io_part& p, const std::byte* memory, std::uint32_t* sums) noexcept {
  std::uint32_t rest = 0;
  for_each_chunk(
      p, [&](std::uint64_t, std::uint64_t at) { *sums++ = chunk_sum(memory + at); },
      [&](std::uint64_t at, std::uint64_t n) { rest = crc32c(memory + at, n, rest); });
  if (p.rest) *sums = rest;
}

bool sums_match(const io_part& p, const std::byte* memory, const std::uint32_t* sums) noexcept {
  std::uint32_t rest = 0;
  bool match = true;
  for_each_chunk(
      p, [&](std::uint64_t, std::uint64_t at) { match &= *sums++ == chunk_sum(memory + at); },
      [&](std::uint64_t at, std::uint64_t n) { rest = crc32c(memory + at, n, rest); });
  return match && (!p.rest || *sums == rest);
}

std::uint32_t rest_sum(const io_part& p, const std::byte* memory) noexcept {
  std::uint32_t rest = 0;
  for_each_chunk(
      p, [](std::uint64_t, std::uint64_t) {},
      [&](std::uint64_t at, std::uint64_t n) { rest = crc32c(memory + at, n, rest); });
  return rest;
}

void append_memory(const io_part& p, std::byte* memory, std::vector<iovec>& to) {
  for (const region& one : p.regions) {
    std::byte* const at = memory + one.memory_offset;
    if (!to.empty() && static_cast<std::byte*>(to.back().iov_base) + to.back().iov_len == at)
      to.back().iov_len += one.length;
    else
      to.push_back({at, one.length});
  }
}

}  // namespace ooc::storage
