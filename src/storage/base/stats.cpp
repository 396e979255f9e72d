// Arithmetic on counter snapshots.
#include "oocarray/stats.hpp"

#include <iterator>

namespace ooc {
namespace {

constexpr std::uint64_t io_stats::*counters[] = {
    &io_stats::read_requests,     &io_stats::write_requests,       &io_stats::read_regions, &io_stats::write_regions,
    &io_stats::bytes_read,        &io_stats::bytes_written,        &io_stats::device_reads, &io_stats::device_writes,
    &io_stats::device_bytes_read, &io_stats::device_bytes_written, &io_stats::syncs,
};
static_assert(sizeof(io_stats) == std::size(counters) * sizeof(std::uint64_t), "a counter is missing from the list");

}  // namespace

io_stats& io_stats::operator+=(const io_stats& o) noexcept {
  for (auto c : counters) this->*c += o.*c;
  return *this;
}

io_stats operator-(io_stats a, const io_stats& b) noexcept {
  for (auto c : counters) a.*c -= b.*c;
  return a;
}

}  // namespace ooc
