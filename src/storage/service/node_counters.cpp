#include "storage/service/node_counters.hpp"

#include <iterator>

namespace ooc::storage {
namespace {

constexpr std::uint64_t io_stats::*const by_index[] = {
    &io_stats::read_requests,     &io_stats::write_requests,       &io_stats::read_regions, &io_stats::write_regions,
    &io_stats::bytes_read,        &io_stats::bytes_written,        &io_stats::device_reads, &io_stats::device_writes,
    &io_stats::device_bytes_read, &io_stats::device_bytes_written, &io_stats::syncs,
};

}  // namespace

void node_counters::add(std::uint64_t io_stats::*counter, std::uint64_t n) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (by_index[i] == counter) values_[i].fetch_add(n, std::memory_order_relaxed);
}

io_stats node_counters::snapshot() const noexcept {
  static_assert(std::size(by_index) == count, "a counter is missing from the list");
  io_stats s;
  for (std::size_t i = 0; i < count; ++i) s.*by_index[i] = values_[i].load(std::memory_order_relaxed);
  return s;
}

}  // namespace ooc::storage
