#include "runtime/algorithm/multiply_plan.hpp"

#include <algorithm>
#include <limits>

namespace ooc::detail {
namespace {

/// The cost of the begin of a region for a disk, as the bytes that it transfers in that time.
constexpr double region_bytes = 16 << 10;
/// The cost of a byte of c that passes through the processor's cache with each panel, relative to one of a disk.
constexpr double passing_byte = 0.25;
constexpr std::size_t most_depth = 1024;  ///< of panels of b that are not all of it
constexpr std::uint64_t most_tiles_in_a_row = 4096;

std::uint64_t parts(std::uint64_t n, std::uint64_t size) { return (n + size - 1) / size; }

bool b_is_one_panel(const multiply_facts& f, const multiply_plan& p) {
  return p.tile_columns == f.columns && p.depth_b == f.depth;
}

void complete(const multiply_facts& f, multiply_plan& p) {
  const std::uint64_t tiles_down = parts(f.rows, p.tile_rows);
  const std::uint64_t tiles_across = parts(f.columns, p.tile_columns);
  p.passes_a = p.depth_a == f.depth ? 1 : tiles_across;
  p.passes_b = f.b_in_memory ? 0 : b_is_one_panel(f, p) ? 1 : tiles_down;
  p.buffers_a = p.depth_a == f.depth && tiles_down == 1 ? 1 : 2;
  p.buffers_b = f.b_in_memory ? 0 : b_is_one_panel(f, p) ? 1 : 2;
}

double cost(const multiply_facts& f, const multiply_plan& p) {
  const auto element = static_cast<double>(f.element_size);
  const auto rows = static_cast<double>(f.rows), depth = static_cast<double>(f.depth),
             columns = static_cast<double>(f.columns);
  // Rows that are whole follow each other in the file.
  const double regions_a = p.depth_a == f.depth ? 1 : rows * static_cast<double>(parts(f.depth, p.depth_a));
  const double regions_b =
      p.tile_columns == f.columns ? 1 : depth * static_cast<double>(parts(f.columns, p.tile_columns));
  const double passing = 2 * rows * columns * element * static_cast<double>(parts(f.depth, p.depth_b));
  return passing_byte * passing +
         static_cast<double>(p.passes_a) * (rows * depth * element + regions_a * region_bytes) +
         static_cast<double>(p.passes_b) * (depth * columns * element + regions_b * region_bytes);
}

/// The most rows of a tile of which everything else is given; 0: not one fits.
std::size_t most_rows(const multiply_facts& f, multiply_plan p, std::uint64_t elements) {
  p.tile_rows = f.rows;
  complete(f, p);
  if (p.elements(f) <= elements) return f.rows;
  p.tile_rows = 1;
  complete(f, p);
  const std::uint64_t each = (f.c_in_memory ? 0 : p.tile_columns) + p.buffers_a * p.depth_a;
  const std::uint64_t fixed = p.elements(f) - each;
  return fixed >= elements ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>((elements - fixed) / each, f.rows));
}

/// Calls use(tile_columns) for the widths of tiles that are looked at, the widest first.
template <class F>
void for_each_width(const multiply_facts& f, F use) {
  for (std::uint64_t across = 1; across <= std::min<std::uint64_t>(f.columns, most_tiles_in_a_row);
       across += std::max<std::uint64_t>(1, across / 8)) {
    use(static_cast<std::size_t>(parts(f.columns, across)));
    if (f.b_in_memory && f.c_in_memory) return;
  }
}

}  // namespace

std::uint64_t multiply_plan::elements(const multiply_facts& f) const {
  std::uint64_t n = std::uint64_t{buffers_a} * tile_rows * depth_a;
  if (!f.b_in_memory) n += std::uint64_t{buffers_b} * depth_b * tile_columns;
  if (!f.c_in_memory) n += std::uint64_t{tile_rows} * tile_columns;
  return n;
}

multiply_plan plan_multiply(const multiply_facts& f, std::uint64_t memory) {
  const std::uint64_t elements = memory / f.element_size;
  multiply_plan best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](std::size_t tile_columns, std::size_t depth_a, std::size_t depth_b) {
    multiply_plan p;
    p.tile_columns = tile_columns;
    p.depth_a = depth_a;
    p.depth_b = depth_b;
    const std::size_t rows = most_rows(f, p, elements);
    if (rows == 0) return;
    // As few rows of tiles, and these alike.
    p.tile_rows = static_cast<std::size_t>(parts(f.rows, parts(f.rows, rows)));
    complete(f, p);
    const double c = cost(f, p);
    if (p.elements(f) > elements || c >= least) return;
    least = c;
    best = p;
  };
  for_each_width(f, [&](std::size_t tile_columns) {
    for (std::size_t depth_b = f.b_in_memory ? f.depth : std::min(f.depth, most_depth);; depth_b /= 2) {
      for (std::size_t depth_a = depth_b; depth_a < f.depth; depth_a *= 2) consider(tile_columns, depth_a, depth_b);
      consider(tile_columns, f.depth, depth_b);
      if (tile_columns == f.columns && depth_b != f.depth) consider(tile_columns, f.depth, f.depth);
      if (depth_b == 1) break;
    }
  });
  return best;
}

std::uint64_t least_multiply_memory(const multiply_facts& f) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for_each_width(f, [&](std::size_t tile_columns) {
    multiply_plan p;
    p.tile_rows = p.depth_a = p.depth_b = 1;
    p.tile_columns = tile_columns;
    complete(f, p);
    least = std::min(least, p.elements(f));
  });
  return least * f.element_size;
}

}  // namespace ooc::detail
