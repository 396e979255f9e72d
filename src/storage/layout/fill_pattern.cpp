#include "storage/layout/fill_pattern.hpp"

#include <algorithm>
#include <cstring>

namespace ooc::storage {
namespace {

void repeat(std::span<const std::byte> pattern, std::uint64_t phase, std::span<std::byte> out) noexcept {
  // One period by bytes, then doubling copies of what is there.
  const std::size_t period = std::min(pattern.size(), out.size());
  for (std::size_t i = 0; i < period; ++i) out[i] = pattern[(phase + i) % pattern.size()];
  for (std::size_t have = period; have < out.size();) {
    const std::size_t n = std::min(have, out.size() - have);
    std::memcpy(out.data() + have, out.data(), n);
    have += n;
  }
}

}  // namespace

void fill_with(const std::vector<std::byte>& pattern, std::uint64_t at, std::span<std::byte> out) noexcept {
  if (!pattern.empty()) return repeat(pattern, at % pattern.size(), out);
  if (!out.empty()) std::memset(out.data(), 0, out.size());
}

bool is_filled_with(const std::vector<std::byte>& pattern, std::uint64_t at,
                    std::span<const std::byte> bytes) noexcept {
  const std::size_t n = std::max<std::size_t>(1, pattern.size());
  for (std::size_t i = 0; i < std::min(n, bytes.size()); ++i)
    if (bytes[i] != (pattern.empty() ? std::byte{} : pattern[(at + i) % n])) return false;
  // From there on every byte is that of one pattern before.
  return bytes.size() <= n || std::memcmp(bytes.data(), bytes.data() + n, bytes.size() - n) == 0;
}

void fill_object_bytes(const file_shape& f, std::uint32_t stripe_index, std::uint64_t node_offset,
                       std::span<std::byte> out) noexcept {
  if (f.fill.empty()) return fill_with({}, 0, out);
  while (!out.empty()) {
    const std::uint64_t rest = f.striping.sf - node_offset % f.striping.sf;
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(rest, out.size()));
    repeat(f.fill, f.striping.file_offset(stripe_index, node_offset) % f.fill.size(), out.first(n));
    node_offset += n;
    out = out.subspan(n);
  }
}

}  // namespace ooc::storage
