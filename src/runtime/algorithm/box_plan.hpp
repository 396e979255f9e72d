// Into which boxes a copy is cut, so that both files see long runs.
//
// A *side* is an array of the copy, with the order of its file.  Boxes are boxes of the target's
// indices; dimension k of the copy is dimension side.dimension[k] of a side.  A box occupies runs
// of each file; its edges grow where the shorter of the two runs grows by it, as long as the memory
// allows. Edges are multiples of tiles, and in the last dimension of a row-major file of 4 KiB, the
// unit in which nodes read and write.
//
// Plain values; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ooc::detail {

using extent_list = std::vector<std::size_t>;

struct copy_side {
  extent_list extents;    ///< of the array
  extent_list tile;       ///< of the file; empty: row-major
  extent_list dimension;  ///< [k]: which of the array's dimensions is dimension k of the copy
  std::size_t element_size = 1;

  /// Bytes that lie together in the file where a box with these edges (of the copy) does.
  std::uint64_t run_bytes(const extent_list& edges) const;
};

/// The edges of boxes of at most `most_elements` (at least 1) of the `region`; `square`: all alike.
extent_list choose_edges(const extent_list& region, const copy_side& from, const copy_side& to,
                         std::uint64_t most_elements, bool square);

/// The boxes lower <= i < upper is cut into, at multiples of the edges; row-major.
class box_grid {
 public:
  box_grid() = default;
  box_grid(extent_list lower, extent_list upper, extent_list edges);

  std::size_t size() const noexcept { return size_; }
  const extent_list& counts() const noexcept { return counts_; }
  void box(std::size_t number, extent_list& lower, extent_list& upper) const;

 private:
  extent_list lower_, upper_, edges_, counts_;
  std::size_t size_ = 0;
};

}  // namespace ooc::detail
