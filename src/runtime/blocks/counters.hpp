// The counters behind runtime_stats, of a runtime and of each segment.
//
// Any thread may count, fault handlers too.
#pragma once

#include <atomic>
#include <cstdint>

#include "oocarray/stats.hpp"

namespace ooc::detail {

struct counters {
  using number = std::atomic<std::uint64_t>;
  number hits{0}, faults{0}, soft_faults{0}, write_faults{0}, evictions{0}, bytes_evicted{0};
  number read_ahead_blocks{0}, read_ahead_hits{0}, read_ahead_waste{0};
  number loads_avoided{0}, bytes_read{0}, bytes_written{0};
  number bytes_reread{0}, blocks_invalidated{0}, bytes_invalidated{0};
  number read_wait_ns{0}, write_wait_ns{0};

  static void add(number& c, std::uint64_t n = 1) noexcept { c.fetch_add(n, std::memory_order_relaxed); }

  /// As they are now; nothing is said of the rest of runtime_stats.
  runtime_stats now() const noexcept {
    const auto get = [](const number& n) { return n.load(std::memory_order_relaxed); };
    runtime_stats r;
    r.hits = get(hits);
    r.faults = get(faults);
    r.soft_faults = get(soft_faults);
    r.write_faults = get(write_faults);
    r.evictions = get(evictions);
    r.bytes_evicted = get(bytes_evicted);
    r.read_ahead_blocks = get(read_ahead_blocks);
    r.read_ahead_hits = get(read_ahead_hits);
    r.read_ahead_waste = get(read_ahead_waste);
    r.loads_avoided = get(loads_avoided);
    r.bytes_read = get(bytes_read);
    r.bytes_reread = get(bytes_reread);
    r.blocks_invalidated = get(blocks_invalidated);
    r.bytes_invalidated = get(bytes_invalidated);
    r.bytes_written = get(bytes_written);
    r.read_wait_ns = get(read_wait_ns);
    r.write_wait_ns = get(write_wait_ns);
    return r;
  }
};

}  // namespace ooc::detail
