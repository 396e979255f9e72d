#include "storage/layout/box_requests.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "oocarray/error.hpp"
#include "storage/layout/element_order.hpp"

namespace ooc::storage {
namespace {

std::uint64_t checked(std::optional<std::uint64_t> bytes) {
  if (!bytes) throw usage_error(errc::invalid_request, "the array has more than 2^63 - 1 bytes");
  return *bytes;
}

/// The tiles of a tiled file.
tile_grid tiles_of(const array_description& a) {
  if (a.tile.size() != a.extents.size() || std::find(a.tile.begin(), a.tile.end(), 0u) != a.tile.end())
    throw usage_error(errc::invalid_request, "a tile needs one number above 0 for each dimension of the array");
  const std::optional<tile_grid> g = tiles_covering(a.extents, a.tile, a.element_size,
                                                    has_reserved_grid(a) ? index_view(a.max_extents) : index_view());
  checked(g ? g->tiles : std::optional<std::uint64_t>());
  return *g;
}

element_order order_of(const array_description& a) {
  if (a.tile.empty()) return element_order::row_major(a.extents, a.element_size);
  const tile_grid g = tiles_of(a);
  return element_order::tiled(a.tile, g, a.element_size, g.tile_bytes);
}

/// Moves `i` to the next index of the box in row-major order; false after the last.
bool advance(index& i, const index& lower, const index& upper) {
  for (std::size_t d = i.size(); d-- > 0;) {
    if (++i[d] < upper[d]) return true;
    i[d] = lower[d];
  }
  return false;
}

}  // namespace

std::uint64_t array_bytes(const array_description& a) { return checked(bytes_of(a.extents, a.element_size)); }

std::uint64_t array_file_bytes(const array_description& a) {
  if (a.tile.empty()) return array_bytes(a);
  const tile_grid g = tiles_of(a);
  return array_bytes(a) == 0 ? 0 : g.tiles * g.tile_bytes;
}

std::uint64_t array_stored_bytes(const array_description& a) {
  if (!has_reserved_grid(a)) return array_file_bytes(a);
  array_description packed = a;
  packed.max_extents.clear();
  return array_file_bytes(packed);
}

byte_interval next_tiles(const array_description& a, std::uint64_t from) {
  const tile_grid g = tiles_of(a);
  const std::size_t rank = a.extents.size();
  const std::uint64_t end = array_file_bytes(a);
  if (from >= end) return {end, end};
  index at(rank), count(rank);  // the tile's place in the grid, tiles of the array
  std::uint64_t number = from / g.tile_bytes;
  for (std::size_t k = rank; k-- > 0;) {
    count[k] = (a.extents[k] + a.tile[k] - 1) / a.tile[k];
    at[k] = number % g.count[k];
    number /= g.count[k];
  }
  const auto outer = std::ranges::mismatch(at, count, std::less<>()).in1;
  if (outer != at.end()) {  // on to the next one: a dimension before has its next number
    std::fill(outer, at.end(), 0);
    for (auto k = static_cast<std::size_t>(outer - at.begin()); k-- > 0;) {
      if (++at[k] < count[k]) break;
      at[k] = 0;
      if (k == 0) return {end, end};
    }
    number = 0;
    for (std::size_t k = 0; k < rank; ++k) number = number * g.count[k] + at[k];
    from = number * g.tile_bytes;
  }
  return {from, (from / g.tile_bytes + count.back() - at.back()) * g.tile_bytes};
}

request box_request(const array_description& a, const index& lower, const index& upper) {
  const std::size_t rank = a.extents.size();
  if (lower.size() != rank || upper.size() != rank)
    throw usage_error(errc::invalid_request, "a box needs one index for each dimension");
  for (std::size_t d = 0; d < rank; ++d)
    if (lower[d] > upper[d] || upper[d] > a.extents[d])
      throw usage_error(errc::invalid_request, "a box reaches past the array in dimension " + std::to_string(d));
  return packed_request(order_of(a), lower, upper);
}

void for_each_slab(const array_description& a, std::uint64_t max_bytes,
                   const std::function<void(const index&, const index&, std::uint64_t)>& f) {
  if (array_bytes(a) == 0) return;
  const std::size_t rank = a.extents.size();
  if (rank == 0) return;
  const auto step = element_order::row_major(a.extents, a.element_size).stride;
  // Cut along dimension k, the slowest of which one index fits into the buffer.
  std::size_t k = 0;
  while (k + 1 < rank && step[k] > max_bytes) ++k;
  std::uint64_t rows = std::max<std::uint64_t>(1, max_bytes / step[k]);
  if (!a.tile.empty() && rows > a.tile[k]) rows = rows / a.tile[k] * a.tile[k];

  index outer_lower(k, 0), outer_upper(a.extents.begin(), a.extents.begin() + static_cast<std::ptrdiff_t>(k));
  index outer = outer_lower;
  index lower(rank, 0), upper = a.extents;
  do {
    for (std::size_t d = 0; d < k; ++d) {
      lower[d] = outer[d];
      upper[d] = outer[d] + 1;
    }
    for (std::uint64_t row = 0; row < a.extents[k];) {
      std::uint64_t n = std::min(rows, a.extents[k] - row);
      // A cut inside a tile ends with the tile, so that no slab straddles two.
      if (!a.tile.empty() && rows < a.tile[k]) n = std::min(n, a.tile[k] - row % a.tile[k]);
      lower[k] = row;
      upper[k] = row + n;
      f(lower, upper, n * step[k]);
      row += n;
    }
  } while (k > 0 && advance(outer, outer_lower, outer_upper));
}

}  // namespace ooc::storage
