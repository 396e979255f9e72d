#include "runtime/blocks/diff.hpp"

#include <algorithm>

#include "runtime/blocks/untracked.hpp"

namespace ooc::detail {

request changes(const request& whole, std::uint32_t element_size, const std::byte* frame, const std::byte* twin) {
  constexpr std::uint64_t stride = 4096;  // most of a block is usually unchanged, or all of it is
  request changed;
  whole.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
    std::uint64_t at = 0;
    while (at < length) {
      // A stride ends where an element ends: one half of an element is not compared without the
      // other.
      const std::uint64_t into = (file + at + stride) % element_size;
      const std::uint64_t n = std::min(stride + (into == 0 ? 0 : element_size - into), length - at);
      if (equal_untracked(frame + memory + at, twin + memory + at, n)) {
        at += n;
        continue;
      }
      for (const std::uint64_t end = at + n; at < end;) {
        const std::uint64_t rest = element_size - (file + at) % element_size;
        const std::uint64_t size = std::min(rest, end - at);
        if (!equal_untracked(frame + memory + at, twin + memory + at, size)) changed.add(file + at, memory + at, size);
        at += size;
      }
    }
  });
  return changed;
}

bytes_in_doubt::bytes_in_doubt(const std::byte* sent, const std::byte* twin, std::size_t bytes) : words_(bytes / 8) {
  for (std::size_t w = 0; w < words_.size(); ++w, sent += 8, twin += 8) {
    if (equal_untracked(sent, twin, 8)) continue;
    for (unsigned i = 0; i < 8; ++i)
      if (!equal_untracked(sent + i, twin + i, 1)) words_[w] |= static_cast<std::uint8_t>(1 << i);
  }
}

void bytes_in_doubt::spoil(std::byte* twin, const std::byte* frame) const noexcept {
  for (std::size_t w = 0; w < words_.size(); ++w, twin += 8, frame += 8)
    for (unsigned i = 0; i < 8 && words_[w] != 0; ++i)
      if (words_[w] >> i & 1) complement_untracked(twin + i, frame + i);
}

}  // namespace ooc::detail
