#include "runtime/geometry/write_notices.hpp"

#include <algorithm>
#include <cstdint>

#include "oocarray/error.hpp"

namespace ooc::detail {
namespace {

void put(std::vector<std::byte>& to, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) to.push_back(static_cast<std::byte>((n & 0x7f) | 0x80));
  to.push_back(static_cast<std::byte>(n));
}

[[noreturn]] void malformed() { throw integrity_error(errc::corrupt, "a write notice of another rank cannot be read"); }

std::uint64_t get(std::span<const std::byte>& from) {
  std::uint64_t n = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (from.empty()) malformed();
    const auto b = static_cast<std::uint64_t>(from.front());
    from = from.subspan(1);
    n |= (b & 0x7f) << shift;
    if (b < 0x80) return n;
  }
  malformed();
}

}  // namespace

std::vector<std::byte> packed_notice(std::span<const block_range> which) {
  std::vector<std::byte> bytes;
  block_index at = 0;
  for (std::size_t i = 0; i < which.size();) {
    const std::uint64_t skipped = which[i].first - at;
    const std::uint64_t written = which[i].last - which[i].first;
    std::uint64_t times = 0;
    for (; i < which.size() && which[i].first - at == skipped && which[i].last - which[i].first == written;
         ++i, ++times)
      at = which[i].last;
    put(bytes, skipped);
    put(bytes, written);
    put(bytes, times);
  }
  return bytes;
}

std::vector<block_range> unpacked_notice(std::span<const std::byte> bytes) {
  std::vector<block_range> which;
  block_index at = 0;
  while (!bytes.empty()) {
    const std::uint64_t skipped = get(bytes);
    const std::uint64_t written = get(bytes);
    for (std::uint64_t times = get(bytes); times > 0; --times) {
      if (written == 0 || at + skipped < at || at + skipped + written < at + skipped) malformed();
      which.push_back({at + skipped, at + skipped + written});
      at = which.back().last;
    }
  }
  return which;
}

std::vector<block_range> merged(std::vector<block_range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const block_range& a, const block_range& b) { return a.first < b.first; });
  std::vector<block_range> result;
  for (const block_range& r : ranges) {
    if (r.first == r.last) continue;
    if (!result.empty() && r.first <= result.back().last)
      result.back().last = std::max(result.back().last, r.last);
    else
      result.push_back(r);
  }
  return result;
}

std::vector<block_range> without(std::span<const block_range> ranges, std::span<const block_range> others) {
  std::vector<block_range> rest;
  auto next = others.begin();
  for (block_range r : ranges) {
    while (next != others.end() && next->last <= r.first) ++next;
    for (auto cut = next; cut != others.end() && cut->first < r.last; ++cut) {
      if (r.first < cut->first) rest.push_back({r.first, cut->first});
      r.first = std::min(r.last, cut->last);
    }
    if (r.first < r.last) rest.push_back(r);
  }
  return rest;
}

}  // namespace ooc::detail
