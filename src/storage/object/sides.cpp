#include "storage/object/sides.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "storage/object/stripe_object.hpp"

namespace ooc::storage {
namespace {

constexpr std::uint64_t region_chunks = checksum_file::region_chunks;

std::uint64_t group_of(std::uint64_t region) noexcept { return region / side_file::group_regions; }

/// Calls f(region, first, end) for the chunks of each region, in order; ends with the first errno.
template <class F>
int each_region(std::span<const chunk_range> chunks, F f) {
  for (const chunk_range& r : chunks)
    for (std::uint64_t at = r.first; at < r.end;) {
      const std::uint64_t region = at / region_chunks;
      const std::uint64_t end = std::min(r.end, (region + 1) * region_chunks);
      if (const int e = f(region, at, end)) return e;
      at = end;
    }
  return 0;
}

void copy_bits(side_bits& to, const side_bits& from, std::uint64_t first, std::uint64_t end) noexcept {
  for (std::uint64_t c = first; c < end;) {
    const std::uint64_t i = c % region_chunks;
    if (i % 8 == 0 && end - c >= 8) {
      to[i / 8] = from[i / 8];
      c += 8;
      continue;
    }
    const auto bit = static_cast<std::uint8_t>(1U << (i % 8));
    to[i / 8] = static_cast<std::uint8_t>((to[i / 8] & ~bit) | (from[i / 8] & bit));
    ++c;
  }
}

}  // namespace

const chunk_places::looked_up& chunk_places::here(std::uint64_t chunk) const noexcept {
  const std::uint64_t region = chunk / region_chunks;
  const auto r =
      std::partition_point(regions_.begin(), regions_.end(), [&](const looked_up& x) { return x.region < region; });
  assert(r != regions_.end() && r->region == region);
  return *r;
}

std::uint64_t chunk_places::run(std::uint64_t chunk, std::uint64_t most) const noexcept {
  if (are_chunks()) return most;
  const looked_up& l = here(chunk);
  most = std::min(most, region_chunks - chunk % region_chunks);
  const unsigned side = side_of(l.sides, chunk), base = side_of(l.bases, chunk);
  std::uint64_t n = 1;
  while (n < most && side_of(l.sides, chunk + n) == side && side_of(l.bases, chunk + n) == base) ++n;
  return n;
}

int chunk_places::find(stripe_object& s, std::span<const chunk_range> chunks, std::uint64_t commit) {
  regions_.clear();
  if (!s.sides()) return 0;
  side_file::group_bits committed;
  std::uint64_t known = ~std::uint64_t{0};
  return each_region(chunks, [&](std::uint64_t region, std::uint64_t, std::uint64_t) {
    if (!regions_.empty() && regions_.back().region == region) return 0;
    looked_up& l = regions_.emplace_back();
    l.region = region;
    if (commit == newest) {
      if (const int e = s.sides().read_present(s, region, l.sides)) return e;
    } else {
      bool there = false;
      if (group_of(region) != known)
        if (const int e = s.sides().file().read_committed(group_of(region), commit, committed, there)) return e;
      known = group_of(region);
      l.sides = committed[region % side_file::group_regions];
    }
    l.bases = l.sides;
    return 0;
  });
}

int chunk_places::choose(stripe_object& s, std::span<const chunk_range> chunks, std::uint64_t commit) {
  regions_.clear();
  if (!s.sides()) return 0;
  written_.assign(chunks.begin(), chunks.end());
  side_file::group_bits committed;
  std::uint64_t known = ~std::uint64_t{0};
  return each_region(chunks, [&](std::uint64_t region, std::uint64_t first, std::uint64_t end) {
    if (group_of(region) != known) {
      bool there = false;
      if (const int e = s.sides().file().read_committed(group_of(region), commit, committed, there)) return e;
      if (!there)
        if (const int e = s.sides().begin_group(s, group_of(region))) return e;
      known = group_of(region);
    }
    if (regions_.empty() || regions_.back().region != region) {
      looked_up& l = regions_.emplace_back();
      l.region = region;
      if (const int e = s.sides().begin_present(s, region, l.bases)) return e;
      l.sides = l.bases;
    }
    side_bits other = committed[region % side_file::group_regions];
    for (std::uint8_t& b : other) b = static_cast<std::uint8_t>(~b);
    copy_bits(regions_.back().sides, other, first, end);
    return 0;
  });
}

int chunk_places::settle(stripe_object& s) const {
  if (are_chunks()) return 0;
  return each_region(written_, [&](std::uint64_t region, std::uint64_t first, std::uint64_t end) {
    const looked_up& l = here(first);
    if (l.sides == l.bases) return 0;
    return s.sides().change_present(s, region, [&](side_bits& present) { copy_bits(present, l.sides, first, end); });
  });
}

}  // namespace ooc::storage
