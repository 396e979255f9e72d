#include "storage/service/changed_bytes.hpp"

#include <algorithm>
#include <utility>

namespace ooc::storage {

changed_bytes::changed_bytes(const striping& s, std::uint64_t size, std::vector<std::vector<byte_interval>> on_nodes)
    : striping_(s), size_(size), on_nodes_(std::move(on_nodes)) {}

std::optional<byte_interval> changed_bytes::piece(std::uint64_t from) const {
  while (from < size_) {
    const std::uint64_t at = striping_.node_offset(from);
    const std::uint64_t stripe_end = at - at % striping_.sf + striping_.sf;
    const auto& ranges = on_nodes_[striping_.stripe_index_of(from)];
    const auto r =
        std::partition_point(ranges.begin(), ranges.end(), [&](const byte_interval& x) { return x.end <= at; });
    if (r != ranges.end() && r->begin < stripe_end) {
      const std::uint64_t begin = from + (std::max(r->begin, at) - at);
      return byte_interval{begin, std::min(size_, from + (std::min(r->end, stripe_end) - at))};
    }
    from += stripe_end - at;
  }
  return std::nullopt;
}

std::optional<byte_interval> changed_bytes::next(std::uint64_t from, std::uint64_t most) const {
  auto all = piece(from);
  while (all && all->end - all->begin < most) {
    const auto more = piece(all->end);
    if (!more || more->begin != all->end) break;
    all->end = more->end;
  }
  if (all) all->end = std::min(all->end, all->begin + most);
  return all;
}

}  // namespace ooc::storage
