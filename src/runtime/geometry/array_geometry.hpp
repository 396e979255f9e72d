// Index arithmetic of an N-d array: where its elements lie in the file and in memory, and which
// requests carry the blocks of one to the other.
//
// Both sides are an element_order (its header has the formula):
//
//     memory, layout_right   one tile, `lead` bytes after the begin of block 0; block b = bytes
//                            [b * block_bytes, (b + 1) * block_bytes), so an element may straddle
//                            two blocks
//     memory, layout_tiled   block b = tile b, at b * block_bytes (tile bytes rounded up to 4 KiB)
//     file, row_major        one tile
//     file, tiled            tile t at t * (tile bytes), edge tiles padded to the whole shape
//
// Tiles, of memory and of the file, are numbered in the grid of max_extents, so that a resize moves none.
// Between the tiles of the array there may then be *outer* ones, which hold none of its elements: their
// blocks have empty bounds and empty requests.  A row-major image has rows of the present extents, so another
// extent than the first moves its elements in memory.
//
// The lead is 0 in a store.  Where the elements of a file that is used in place do not begin with one
// of its pages, the lead makes the borders of blocks those of pages all the same.  Offsets in the file
// are counted from the first element.  The bytes of the lead in memory are not the file's, and are never written.
//
// A geometry is immutable and may be shared by threads.  covers() and the accessors are
// async-signal-safe.  Coordinates, extents and tiles count elements; offsets and steps are bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "oocarray/request.hpp"
#include "runtime/blocks/segment_options.hpp"
#include "storage/layout/element_order.hpp"

namespace ooc::detail {

inline constexpr std::size_t max_rank = 8;

using coordinates = std::array<std::uint64_t, max_rank>;

/// Half-open box of elements; only the first `rank` entries mean anything.
struct index_box {
  coordinates lower{};
  coordinates upper{};
};

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept { return a / b + (a % b != 0); }

inline bool overlap(const index_box& a, const index_box& b, std::size_t rank) noexcept {
  for (std::size_t k = 0; k < rank; ++k)
    if (a.lower[k] >= b.upper[k] || a.upper[k] <= b.lower[k]) return false;
  return true;
}

/// True if every element of `inner` is in `outer`.
inline bool contains(const index_box& outer, const index_box& inner, std::size_t rank) noexcept {
  for (std::size_t k = 0; k < rank; ++k)
    if (inner.lower[k] < outer.lower[k] || inner.upper[k] > outer.upper[k]) return false;
  return true;
}

using storage::element_order;

struct geometry_options {
  std::vector<std::uint64_t> extents = {};  ///< slowest first; each but the first at least 1
  std::uint64_t element_size = 1;
  std::vector<std::uint64_t> max_extents = {};  ///< limits of the extents; empty: the present ones
  std::uint64_t block_bytes = 0;                ///< layout_right: multiple of 4 KiB; ignored if tiled
  std::uint64_t lead = 0;                       ///< below 4 KiB; ignored if tiled
  std::vector<std::uint64_t> tile = {};         ///< memory tile: layout_tiled; empty: layout_right
  std::vector<std::uint64_t> file_tile = {};    ///< tile in the file; empty: row_major
  std::string name = {};                        ///< path, for messages
};

/// A run of bytes.
struct byte_run {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const byte_run&) const = default;
};

class array_geometry {
 public:
  /// Throws usage_error (errc::invalid_request) for a rank outside 1..8, tiles of 0, extents of 0 in another dimension
  /// than the first, a block that is not a multiple of 4 KiB, and where the file or the address range would pass
  /// 2^63 - 1 bytes.
  explicit array_geometry(geometry_options options);

  std::size_t rank() const noexcept { return rank_; }
  std::span<const std::uint64_t> extents() const noexcept { return {extents_.data(), rank_}; }
  /// Shape of a memory tile; layout_right: empty.
  std::span<const std::uint64_t> tile() const noexcept { return {tile_.data(), tiled_ ? rank_ : 0}; }
  /// Shape of a tile of the file; row_major: empty.
  std::span<const std::uint64_t> file_tile() const noexcept { return options_.file_tile; }
  std::uint64_t element_size() const noexcept { return element_size_; }
  std::uint64_t elements() const noexcept { return elements_; }
  std::span<const std::uint64_t> max_extents() const noexcept { return options_.max_extents; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::uint64_t block_bytes() const noexcept { return block_bytes_; }
  std::uint64_t blocks() const noexcept { return blocks_; }
  /// Bytes of memory before the first element; 0 where there is none.
  std::uint64_t lead() const noexcept { return memory_.origin; }
  /// Bytes of memory up to the last element; layout_tiled: to the end of the last tile.
  std::uint64_t memory_bytes() const noexcept {
    return tiled_ ? blocks_ * block_bytes_ : lead() + elements_ * element_size_;
  }
  /// Blocks with all extents at their limits.
  std::uint64_t max_blocks() const noexcept { return max_blocks_; }
  const element_order& memory_order() const noexcept { return memory_; }
  const element_order& file_order() const noexcept { return file_; }
  index_box whole() const noexcept;

  /// The request that carries block b, memory offsets counted from the block's begin.  Clipped at
  /// the array's edge in dimension 0 always, in the others unless padding makes it contiguous.
  request block_request(block_index b) const;
  /// The same without the elements of `box`.
  request outside_request(block_index b, const index_box& box) const;
  /// True if every element of block b, also one that lies in it in part, is in `box`.
  bool covers(block_index b, const index_box& box) const noexcept;

  /// The elements of `box`; in memory they lie row-major and packed.
  request packed_request(const index_box& box) const;

  /// Bytes of a block that lie together in the file, in the middle of the array.
  std::uint64_t run_bytes() const noexcept;

  /// The blocks that hold the elements of `box`: ascending, merged, each block once.
  std::vector<block_range> blocks_of(const index_box& box) const;
  /// The elements of `box` in row-major order as contiguous runs of memory, as long as can be.
  std::vector<byte_run> runs_of(const index_box& box) const;
  /// The smallest box that holds every element of block b, clipped at the array's edge; of an outer tile an empty
  /// one at the edge.
  index_box bounds(block_index b) const noexcept;

  /// The element with this number in row-major order.
  coordinates coordinates_of(std::uint64_t linear) const noexcept;
  /// The element at a byte of block b's memory; one in the padding is moved to the array's edge.
  coordinates element_at(block_index b, std::uint64_t offset) const noexcept;

  /// Tiled files: calls f(box) for elements of the array, once it has become `now`, that lie in the file where
  /// elements or padding of tiles may have been written before: all that is new within `reached` (the extents that
  /// the array has had; empty: the present ones), or within tiles that this array has in part.  Each box lies in one
  /// tile of the file.
  void for_each_uncovered(const array_geometry& now, storage::index_view reached,
                          const std::function<void(const index_box&)>& f) const;
  /// The same array with other extents (at most max_extents()).
  array_geometry resized(storage::index_view extents) const;
  /// The same array in blocks of another size; not where a block is a tile.
  array_geometry with_blocks_of(std::uint64_t bytes) const;

 private:
  template <class F>
  void for_each_box(block_index b, F&& f) const;

  geometry_options options_;
  std::size_t rank_ = 0;
  coordinates extents_{};
  coordinates tile_{};
  coordinates grid_{};  ///< memory tiles in each dimension
  std::uint64_t element_size_ = 0;
  std::uint64_t elements_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t max_blocks_ = 0;
  bool tiled_ = false;
  element_order memory_;
  element_order file_;
};

/// So many elements from number `first` on, in row-major order; in memory they lie packed.
request elements_request(const array_geometry& g, std::uint64_t first, std::uint64_t count);

/// Adds the regions of `part`, whose memory begins at `memory`.
void add_moved(request& whole, const request& part, std::uint64_t memory);

/// The fewest rows that lie together in the file, nothing else between them (1, or those of a tile), and their
/// bytes.
inline std::uint64_t rows_together(const array_geometry& g) noexcept {
  return g.file_tile().empty() ? 1 : g.file_order().tile[0];
}
inline std::uint64_t bytes_together(const array_geometry& g) noexcept {
  return g.file_tile().empty() ? g.file_order().stride[0] : g.file_order().grid_stride[0];
}

/// Bytes that have to be read for `r` where only whole chunks of `chunk` bytes can be read; a chunk
/// is counted once for neighbouring runs.  Stops counting beyond `limit`.
std::uint64_t chunked_bytes(const request& r, std::uint64_t chunk, std::uint64_t limit);

/// A tile whose sides are powers of two, as square as the extents allow, of at most `target_bytes`
/// (but at least one element).
std::vector<std::uint64_t> default_tile(std::span<const std::uint64_t> extents, std::uint64_t element_size,
                                        std::uint64_t target_bytes);

/// "{512, 512}", for messages.
std::string to_string(std::span<const std::uint64_t> list);

/// True if there may be outer tiles in memory.
inline bool has_outer_tiles(const array_geometry& g) noexcept {
  return !g.tile().empty() && !std::ranges::equal(g.extents().subspan(1), g.max_extents().subspan(1));
}
/// True if block b is an outer tile.
inline bool is_outer(const array_geometry& g, block_index b) noexcept {
  const index_box box = g.bounds(b);
  return !std::equal(box.lower.begin(), box.lower.begin() + static_cast<std::ptrdiff_t>(g.rank()), box.upper.begin(),
                     std::less<>());
}
/// The blocks, ascending and merged, of which the array has not the same elements at the same place before and after
/// a change of its extents.
std::vector<block_range> blocks_changed(const array_geometry& was, const array_geometry& now);

}  // namespace ooc::detail
