#include "storage/layout/box_requests.hpp"

#include <algorithm>
#include <limits>

#include "oocarray/error.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t max_bytes_in_file = std::numeric_limits<std::int64_t>::max();

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > max_bytes_in_file / b)
    throw usage_error(errc::invalid_request, "the array has more than 2^63 - 1 bytes");
  return a * b;
}

/// Bytes from one index of each dimension to the next in a row-major box of `shape`.
index steps_of(const index& shape, std::uint64_t element_size) {
  index step(shape.size());
  std::uint64_t s = element_size;
  for (std::size_t d = shape.size(); d-- > 0;) {
    step[d] = s;
    s *= shape[d];
  }
  return step;
}

/// Adds the box of `count` elements a side whose first one is at these offsets.
void add_box(request& r, std::uint64_t file_offset, std::uint64_t memory_offset, const index& count,
             const index& file_step, const index& memory_step, std::uint64_t element_size) {
  nested_request n;
  n.file_offset = file_offset;
  n.memory_offset = memory_offset;
  n.run = element_size;
  // Trailing dimensions that are contiguous on both sides are one run.
  std::size_t d = count.size();
  while (d > 0 &&
         (count[d - 1] == 1 || (file_step[d - 1] == n.run && memory_step[d - 1] == n.run))) {
    n.run *= count[d - 1];
    --d;
  }
  for (std::size_t i = 0; i < d; ++i) {
    if (count[i] == 1) continue;
    if (n.depth == nested_request::max_levels)
      throw usage_error(errc::invalid_request, "a box of more than " +
                                                   std::to_string(nested_request::max_levels + 1) +
                                                   " dimensions does not fit into one request");
    n.levels[n.depth++] = {count[i], file_step[i], memory_step[i]};
  }
  r.add(n);
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

std::uint64_t array_bytes(const array_description& a) {
  if (std::find(a.extents.begin(), a.extents.end(), 0u) != a.extents.end()) return 0;
  std::uint64_t bytes = a.element_size;
  for (const std::uint64_t e : a.extents) bytes = product(bytes, e);
  return bytes;
}

std::uint64_t array_file_bytes(const array_description& a) {
  if (a.tile.empty()) return array_bytes(a);
  if (a.tile.size() != a.extents.size() ||
      std::find(a.tile.begin(), a.tile.end(), 0u) != a.tile.end())
    throw usage_error(errc::invalid_request,
                      "a tile needs one number above 0 for each dimension of the array");
  if (array_bytes(a) == 0) return 0;
  std::uint64_t bytes = a.element_size;
  for (std::size_t d = 0; d < a.tile.size(); ++d) {
    const std::uint64_t tiles = a.extents[d] / a.tile[d] + (a.extents[d] % a.tile[d] != 0);
    bytes = product(product(bytes, tiles), a.tile[d]);
  }
  return bytes;
}

request box_request(const array_description& a, const index& lower, const index& upper) {
  const std::size_t rank = a.extents.size();
  if (lower.size() != rank || upper.size() != rank)
    throw usage_error(errc::invalid_request, "a box needs one index for each dimension");
  index shape(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (lower[d] > upper[d] || upper[d] > a.extents[d])
      throw usage_error(errc::invalid_request,
                        "a box reaches past the array in dimension " + std::to_string(d));
    shape[d] = upper[d] - lower[d];
    if (shape[d] == 0) return {};
  }
  request r;
  const index memory_step = steps_of(shape, a.element_size);
  if (a.tile.empty()) {
    const index file_step = steps_of(a.extents, a.element_size);
    std::uint64_t offset = 0;
    for (std::size_t d = 0; d < rank; ++d) offset += lower[d] * file_step[d];
    add_box(r, offset, 0, shape, file_step, memory_step, a.element_size);
    return r;
  }

  const index in_tile = steps_of(a.tile, a.element_size);
  index tiles(rank), first(rank), last(rank);  // tiles that the box touches: first <= q < last
  std::uint64_t tile_bytes = a.element_size;
  for (std::size_t d = 0; d < rank; ++d) {
    tiles[d] = (a.extents[d] + a.tile[d] - 1) / a.tile[d];
    first[d] = lower[d] / a.tile[d];
    last[d] = (upper[d] - 1) / a.tile[d] + 1;
    tile_bytes *= a.tile[d];
  }
  const index tile_step = steps_of(tiles, tile_bytes);
  index q = first, count(rank);
  do {
    std::uint64_t file_offset = 0, memory_offset = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t from = std::max(lower[d], q[d] * a.tile[d]);
      const std::uint64_t to = std::min(upper[d], (q[d] + 1) * a.tile[d]);
      count[d] = to - from;
      file_offset += q[d] * tile_step[d] + from % a.tile[d] * in_tile[d];
      memory_offset += (from - lower[d]) * memory_step[d];
    }
    add_box(r, file_offset, memory_offset, count, in_tile, memory_step, a.element_size);
  } while (advance(q, first, last));
  return r;
}

void for_each_slab(const array_description& a, std::uint64_t max_bytes,
                   const std::function<void(const index&, const index&, std::uint64_t)>& f) {
  if (array_bytes(a) == 0) return;
  const std::size_t rank = a.extents.size();
  if (rank == 0) return;
  const index step = steps_of(a.extents, a.element_size);
  // Cut along dimension k, the slowest of which one index fits into the buffer.
  std::size_t k = 0;
  while (k + 1 < rank && step[k] > max_bytes) ++k;
  std::uint64_t rows = std::max<std::uint64_t>(1, max_bytes / step[k]);
  if (!a.tile.empty() && rows > a.tile[k]) rows = rows / a.tile[k] * a.tile[k];

  index outer_lower(k, 0),
      outer_upper(a.extents.begin(), a.extents.begin() + static_cast<std::ptrdiff_t>(k));
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
