#include "runtime/changes.hpp"

#include <algorithm>

#include "runtime/untracked.hpp"

namespace ooc::detail {

request changes(const request& whole, std::uint32_t element_size, const std::byte* frame,
                const std::byte* twin) {
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
        if (!equal_untracked(frame + memory + at, twin + memory + at, size))
          changed.add(file + at, memory + at, size);
        at += size;
      }
    }
  });
  return changed;
}

}  // namespace ooc::detail
