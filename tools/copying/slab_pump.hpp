// Moves an array slab by slab through two buffers: while one is being filled the other is emptied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <span>

#include "base/interrupt.hpp"
#include "storage/layout/box_requests.hpp"

namespace ooc::tool {

/// Called with the slab's box and the buffer that holds it, row-major.  Throws on failure.
using slab_step =
    std::function<void(const storage::index& lower, const storage::index& upper, std::span<std::byte> bytes)>;

/// Calls fill() and then drain() for every slab that walk() gives its argument, in order; fill() of the next slab
/// runs beside drain() of the last, on another thread.  Slabs have at most `bytes`; holds 2 * bytes of memory.  What a
/// step throws comes out when the other has ended; a signal ends it between two steps (interrupted).
template <class Walk>
void pump(std::uint64_t bytes, const Walk& walk, const slab_step& fill, const slab_step& drain) {
  struct buffer {
    explicit buffer(std::uint64_t n)
        : memory(static_cast<std::byte*>(std::aligned_alloc(4096, (n + 4095) / 4096 * 4096)), &std::free) {
      if (!memory) throw std::bad_alloc();
    }
    std::unique_ptr<std::byte, void (*)(void*)> memory;
  };
  buffer buffers[2]{buffer(bytes), buffer(bytes)};
  std::future<void> draining;  // after the buffers: its destructor waits for their last use
  unsigned turn = 0;
  walk([&](const storage::index& lower, const storage::index& upper, std::uint64_t n) {
    const std::span slab(buffers[turn].memory.get(), static_cast<std::size_t>(n));
    check_interrupted();
    fill(lower, upper, slab);
    if (draining.valid()) draining.get();
    draining = std::async(std::launch::async, [&drain, lower, upper, slab] { drain(lower, upper, slab); });
    turn ^= 1;
  });
  if (draining.valid()) draining.get();
  check_interrupted();
}

/// The same for the slabs of an array in row-major order, of at most `max_bytes` and at least an element.
inline void pump_slabs(const storage::array_description& array, std::uint64_t max_bytes, const slab_step& fill,
                       const slab_step& drain) {
  const std::uint64_t bytes =
      std::max<std::uint64_t>(array.element_size, std::min(max_bytes, storage::array_bytes(array)));
  pump(
      bytes, [&](const auto& step) { storage::for_each_slab(array, max_bytes, step); }, fill, drain);
}

}  // namespace ooc::tool
