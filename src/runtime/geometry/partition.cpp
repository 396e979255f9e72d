#include "runtime/geometry/partition.hpp"

#include <algorithm>
#include <numeric>

#include "storage/layout/file_shape.hpp"

namespace ooc::detail {
namespace {

/// The fewest rows that end where a block ends.
std::uint64_t rows_in_whole_blocks(const array_geometry& g) {
  if (!g.tile().empty()) return g.tile()[0];
  const std::uint64_t row_bytes = g.memory_order().stride[0];
  return g.block_bytes() / std::gcd(row_bytes, g.block_bytes());
}

/// Rows of the largest of `parts` parts that end at multiples of `unit`.
std::uint64_t largest_part(std::uint64_t rows, std::uint64_t unit, std::uint64_t parts) {
  return ceil_div(ceil_div(rows, unit), parts) * unit;
}

bool about_even(std::uint64_t largest, std::uint64_t rows, std::uint64_t parts) {
  return largest == ceil_div(rows, parts) ||
         static_cast<double>(largest) <= 1.25 * static_cast<double>(rows) / static_cast<double>(parts);
}

/// The least common multiple; 0 where it is beyond `limit`.
std::uint64_t common_multiple(std::uint64_t a, std::uint64_t b, std::uint64_t limit) {
  std::uint64_t m = 0;
  return __builtin_mul_overflow(a / std::gcd(a, b), b, &m) || m > limit ? 0 : m;
}

/// Rows in a stripe, if each of `parts` parts can have one and none more; else 0.
std::uint64_t rows_in_stripe(const array_geometry& g, const striping& s, std::uint64_t parts) {
  if (s.sf == 0 || s.sf % bytes_together(g) != 0) return 0;
  const std::uint64_t rows = g.extents()[0];
  const std::uint64_t stripe = s.sf / bytes_together(g) * rows_together(g);
  return ceil_div(rows, stripe) <= parts && about_even(stripe, rows, parts) ? stripe : 0;
}

/// The blocks of whole rows lie one after the other.
block_range joined(const std::vector<block_range>& list) {
  return list.empty() ? block_range{} : block_range{list.front().first, list.back().last};
}

}  // namespace

index_box part_of(const array_geometry& g, const striping& s, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t rows = g.extents()[0];
  index_box part = g.whole();
  if (const std::uint64_t stripe = rows_in_stripe(g, s, parts)) {
    part.lower[0] = index < rows / stripe + 1 ? std::min(rows, index * stripe) : rows;
    part.upper[0] = std::min(rows, part.lower[0] + stripe);
    return part;
  }
  std::uint64_t unit = rows_in_whole_blocks(g);
  if (!about_even(largest_part(rows, unit, parts), rows, parts)) unit = 1;
  const std::uint64_t units = ceil_div(rows, unit);
  const auto begin = [&](std::uint64_t i) {
    // i * units / parts without overflow.
    return std::min(rows, (units / parts * i + units % parts * i / parts) * unit);
  };
  part.lower[0] = begin(index);
  part.upper[0] = begin(index + 1);
  return part;
}

std::uint64_t equal_parts(const array_geometry& g, std::uint64_t parts) {
  const std::uint64_t rows = g.extents()[0];
  const std::uint64_t together = rows_together(g);
  const std::uint64_t in_chunks = storage::chunk_size / std::gcd(bytes_together(g), storage::chunk_size) * together;
  for (const std::uint64_t unit : {common_multiple(rows_in_whole_blocks(g), together, rows), in_chunks, together}) {
    if (unit == 0) continue;
    const std::uint64_t largest = largest_part(rows, unit, parts);
    if (about_even(largest, rows, parts)) return largest;
  }
  return 0;
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
