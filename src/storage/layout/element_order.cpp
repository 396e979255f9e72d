#include "storage/layout/element_order.hpp"

#include <algorithm>
#include <string>

#include "oocarray/error.hpp"

namespace ooc::storage {
namespace {

using index_array = std::array<std::uint64_t, max_dimensions>;

void check_dimensions(std::size_t rank) {
  if (rank > max_dimensions)
    throw usage_error(errc::invalid_request, "an array of " + std::to_string(rank) + " dimensions: at most " +
                                                 std::to_string(max_dimensions) + " are possible");
}

}  // namespace

std::optional<std::uint64_t> bytes_of(index_view shape, std::uint64_t element_size) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  std::uint64_t bytes = element_size;
  for (const std::uint64_t n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes) || bytes > max_array_bytes) return {};
  return bytes;
}

std::optional<tile_grid> tiles_covering(index_view extents, index_view tile, std::uint64_t element_size,
                                        index_view reserved) {
  check_dimensions(extents.size());
  const auto tiles_of = [&](std::uint64_t extent, std::size_t k) { return extent / tile[k] + (extent % tile[k] != 0); };
  tile_grid g;
  for (std::size_t k = 0; k < extents.size(); ++k)
    g.count[k] = tiles_of(reserved.empty() ? extents[k] : reserved[k], k);
  const std::optional<std::uint64_t> tile_bytes = bytes_of(tile, element_size);
  if (!tile_bytes || !bytes_of({g.count.data(), extents.size()}, *tile_bytes)) return {};
  g.tile_bytes = *tile_bytes;
  if (std::ranges::find(extents, 0u) != extents.end()) return g;
  std::uint64_t last = 0;
  for (std::size_t k = 0; k < extents.size(); ++k) last = last * g.count[k] + tiles_of(extents[k], k) - 1;
  g.tiles = last + 1;
  return g;
}

element_order element_order::row_major(index_view shape, std::uint64_t element_size) {
  check_dimensions(shape.size());
  tile_grid one;
  one.count.fill(1);
  index_array tile;
  std::uint64_t bytes = element_size;
  for (std::size_t k = 0; k < shape.size(); ++k) bytes *= tile[k] = std::max<std::uint64_t>(shape[k], 1);
  return tiled({tile.data(), shape.size()}, one, element_size, bytes);
}

element_order element_order::tiled(index_view tile, const tile_grid& grid, std::uint64_t element_size,
                                   std::uint64_t tile_step) {
  check_dimensions(tile.size());
  element_order o;
  o.rank = tile.size();
  o.element_size = element_size;
  o.tile_step = tile_step;
  std::ranges::copy(tile, o.tile.begin());
  std::uint64_t in = element_size;
  std::uint64_t out = tile_step;
  for (std::size_t k = o.rank; k-- > 0;) {
    o.stride[k] = in;
    o.grid_stride[k] = out;
    in *= o.tile[k];
    out *= grid.count[k];
  }
  return o;
}

std::uint64_t element_order::offset(index_view c) const noexcept {
  std::uint64_t o = origin;
  for (std::size_t k = 0; k < rank; ++k) o += c[k] / tile[k] * grid_stride[k] + c[k] % tile[k] * stride[k];
  return o;
}

// A box is affine in both orders once it is cut at the tile borders of the file: one nested
// request.
void add_box(request& r, const element_order& file, const element_order& memory, std::uint64_t memory_origin,
             index_view lower, index_view upper) {
  cut_at_tiles(file, lower, upper, [&](index_view from, index_view to) {
    nested_request n;
    n.file_offset = file.offset(from);
    n.memory_offset = memory.offset(from) - memory_origin;
    n.run = file.element_size;
    // Levels are found innermost first; runs and levels that continue each other are joined.
    std::array<stride_level, nested_request::max_levels> found;
    std::uint32_t depth = 0;
    for (std::size_t k = file.rank; k-- > 0;) {
      const std::uint64_t count = to[k] - from[k];
      if (count == 1) continue;
      const std::uint64_t fs = file.stride[k];
      const std::uint64_t ms = memory.stride[k];
      if (depth == 0 && fs == n.run && ms == n.run) {
        n.run *= count;
      } else if (depth > 0 && fs == found[depth - 1].file_step * found[depth - 1].count &&
                 ms == found[depth - 1].memory_step * found[depth - 1].count) {
        found[depth - 1].count *= count;
      } else if (depth == found.size()) {
        throw usage_error(errc::invalid_request, "a box of more than " + std::to_string(found.size() + 1) +
                                                     " dimensions does not fit into one request");
      } else {
        found[depth++] = {count, fs, ms};
      }
    }
    n.depth = depth;
    std::reverse_copy(found.begin(), found.begin() + depth, n.levels.begin());
    r.add(n);
  });
}

request packed_request(const element_order& file, index_view lower, index_view upper) {
  request r;
  index_array shape;
  for (std::size_t k = 0; k < file.rank; ++k) {
    if (lower[k] >= upper[k]) return r;
    shape[k] = upper[k] - lower[k];
  }
  element_order memory = element_order::row_major({shape.data(), file.rank}, file.element_size);
  // Indices stay those of the file: all that are looked at lie in one tile.
  std::ranges::copy(upper, memory.tile.begin());
  add_box(r, file, memory, memory.offset(lower), lower, upper);
  return r;
}

}  // namespace ooc::storage
