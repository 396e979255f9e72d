#include "copying/byte_copy.hpp"

#include <algorithm>
#include <vector>

#include "base/interrupt.hpp"
#include "copying/slab_pump.hpp"

namespace ooc::tool {

void copy_bytes(byte_source& source, byte_target& target, std::uint64_t buffer,
                const std::function<void(std::uint64_t)>& step) {
  if (source.is_stream) {
    std::vector<std::byte> memory(buffer);
    for (;;) {
      check_interrupted();
      const std::size_t n = source.next(memory);
      if (n == 0) return;
      target.append(std::span(memory).first(n));
      step(n);
    }
  }
  if (source.meta.size == 0) return;
  std::uint64_t read = 0, written = 0;
  pump(
      std::min(buffer, source.meta.size),
      [&](const auto& slab_of) {
        while ((read += source.skip()) < source.meta.size) {
          const std::uint64_t n = std::min({buffer, source.together(), source.meta.size - read});
          slab_of({read}, {read + n}, n);
          read += n;
        }
      },
      [&](const storage::index&, const storage::index&, std::span<std::byte> slab) { (void)source.next(slab); },
      [&](const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
        if (lower[0] != written) target.skip(lower[0] - written);
        target.append(slab);
        written = upper[0];
        step(slab.size());
      });
}

}  // namespace ooc::tool
