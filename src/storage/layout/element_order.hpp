// Where the elements of an N-d array lie, in a file or in memory, and which request carries a box
// of them from one to the other.
//
// An *order* maps the index of an element to a byte offset.  The index space is cut into tiles of
// one shape; tile t (row-major order of tiles) begins at t * tile_step, and its elements lie
// row-major within it.  Row-major storage is the case of a single tile.
//
//     offset(c) = origin + sum_k (c_k div tile_k) * grid_stride_k + (c_k mod tile_k) * stride_k
//
// Indices, extents and tiles count elements, slowest dimension first; offsets and steps are bytes.
// Pure functions and immutable values; offset() is async-signal-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "oocarray/request.hpp"

namespace ooc::storage {

/// Of an array in a file; what is used in memory as an array has fewer.
inline constexpr std::size_t max_dimensions = 32;

using index_view = std::span<const std::uint64_t>;

/// Bytes of an array, as of the file that it is in.
inline constexpr std::uint64_t max_array_bytes = std::numeric_limits<std::int64_t>::max();

/// Bytes of an array of this shape; nothing beyond max_array_bytes.
std::optional<std::uint64_t> bytes_of(index_view shape, std::uint64_t element_size);

/// The grid in which the tiles of one shape that cover an array are numbered.
struct tile_grid {
  std::array<std::uint64_t, max_dimensions> count{};  ///< in each dimension
  std::uint64_t tiles = 0;                            ///< one more than the number of the array's last tile
  std::uint64_t tile_bytes = 0;
};

/// The grid is that of an array of `reserved`, no extent of which is less than that of `extents`; empty: of
/// `extents`.  Nothing where all its tiles together pass 2^63 - 1 bytes.  `tile` has as many numbers as `extents`,
/// each at least 1.
std::optional<tile_grid> tiles_covering(index_view extents, index_view tile, std::uint64_t element_size,
                                        index_view reserved = {});

struct element_order {
  std::size_t rank = 0;
  std::uint64_t element_size = 0;
  std::array<std::uint64_t, max_dimensions> tile{};         ///< tile shape
  std::array<std::uint64_t, max_dimensions> stride{};       ///< between neighbours within a tile
  std::array<std::uint64_t, max_dimensions> grid_stride{};  ///< between neighbouring tiles
  std::uint64_t tile_step = 0;
  std::uint64_t origin = 0;  ///< where the first element lies

  /// One tile of this shape, whose bytes do not pass 2^63 - 1; an extent of 0 counts as 1.  Throws usage_error
  /// (errc::invalid_request) for more than max_dimensions.
  static element_order row_major(index_view shape, std::uint64_t element_size);
  /// Tiles that begin `tile_step` bytes after each other.  Throws as row_major() does.
  static element_order tiled(index_view tile, const tile_grid& grid, std::uint64_t element_size,
                             std::uint64_t tile_step);

  std::uint64_t offset(index_view c) const noexcept;
  bool operator==(const element_order&) const = default;
};

/// Adds the elements lower <= i < upper, which lie in one tile of `memory`; memory offsets are
/// counted from `memory_origin`.  One entry for each tile of the file that the box touches.  Throws
/// usage_error (errc::invalid_request) where strides need more than nested_request::max_levels.
void add_box(request& r, const element_order& file, const element_order& memory, std::uint64_t memory_origin,
             index_view lower, index_view upper);

/// Calls f(lower, upper) for the parts of a box that lie in one tile each, in row-major order of tiles.
template <class F>
void cut_at_tiles(const element_order& o, index_view lower, index_view upper, F&& f) {
  std::array<std::uint64_t, max_dimensions> t, from, to;  // left as they are beyond `rank`
  for (std::size_t k = 0; k < o.rank; ++k) t[k] = lower[k] / o.tile[k];
  for (;;) {
    for (std::size_t k = 0; k < o.rank; ++k) {
      from[k] = std::max(lower[k], t[k] * o.tile[k]);
      to[k] = std::min(upper[k], (t[k] + 1) * o.tile[k]);
    }
    f(index_view(from.data(), o.rank), index_view(to.data(), o.rank));
    std::size_t k = o.rank;
    for (;; --k) {
      if (k == 0) return;
      if (++t[k - 1] * o.tile[k - 1] < upper[k - 1]) break;
      t[k - 1] = lower[k - 1] / o.tile[k - 1];
    }
  }
}

/// The elements lower <= i < upper; in memory they lie row-major and packed.
request packed_request(const element_order& file, index_view lower, index_view upper);

}  // namespace ooc::storage
