#include "runtime/partition.hpp"

#include <algorithm>
#include <numeric>

namespace ooc::detail {
namespace {

/// The fewest rows that end where a block ends.
std::uint64_t rows_in_whole_blocks(const array_geometry& g) {
  if (!g.tile().empty()) return g.tile()[0];
  const std::uint64_t row_bytes = g.elements() / g.extents()[0] * g.element_size();
  return g.block_bytes() / std::gcd(row_bytes, g.block_bytes());
}

/// The blocks of whole rows lie one after the other.
block_range joined(const std::vector<block_range>& list) {
  return list.empty() ? block_range{} : block_range{list.front().first, list.back().last};
}

}  // namespace

index_box part_of(const array_geometry& g, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t rows = g.extents()[0];
  std::uint64_t unit = rows_in_whole_blocks(g);
  std::uint64_t units = (rows + unit - 1) / unit;
  const double largest = static_cast<double>((units + parts - 1) / parts * unit);
  if (largest > 1.25 * static_cast<double>(rows) / static_cast<double>(parts)) {
    unit = 1;
    units = rows;
  }
  const auto begin = [&](std::uint64_t i) {
    // i * units / parts without overflow.
    return std::min(rows, (units / parts * i + units % parts * i / parts) * unit);
  };
  index_box part = g.whole();
  part.lower[0] = begin(index);
  part.upper[0] = begin(index + 1);
  return part;
}

part_blocks blocks_of_part(const array_geometry& g, const index_box& part) {
  if (part.lower[0] >= part.upper[0]) return {};
  part_blocks b;
  b.own = b.touched = joined(g.blocks_of(part));
  while (b.own.first < b.own.last && !g.covers(b.own.first, part)) ++b.own.first;
  while (b.own.first < b.own.last && !g.covers(b.own.last - 1, part)) --b.own.last;
  index_box wider = part;
  if (wider.lower[0] > 0) --wider.lower[0];
  wider.upper[0] = std::min(wider.upper[0] + 1, g.extents()[0]);
  b.near = joined(g.blocks_of(wider));
  return b;
}

}  // namespace ooc::detail
