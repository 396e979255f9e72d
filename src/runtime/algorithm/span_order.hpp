// In which pieces, and in which runs, a pass goes over arrays of one shape.
//
// Where all arrays are row-major in memory, pieces are intervals of the row-major order of
// elements.  Else they are the tiles of a leading array, each cut into runs that are contiguous in
// all of them; where all arrays have the same tiles, a whole tile is one run.
//
// A plain value; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "oocarray/detail/span_engine.hpp"
#include "runtime/algorithm/box_plan.hpp"

namespace ooc::detail {

class span_order {
 public:
  /// Rows first <= i < last are this rank's.
  span_order(const span_request& r, std::size_t first, std::size_t last, unsigned threads);

  std::size_t pieces() const noexcept { return pieces_; }
  std::size_t elements(std::size_t piece) const;
  using use_run = std::function<void(std::byte* const* p, std::size_t count, const std::size_t* at)>;
  void for_each_run(std::size_t piece, const use_run& use) const;

  /// Bytes that should fit into memory so that no block is loaded twice.
  std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }

 private:
  struct place {
    std::byte* base;
    std::size_t element_size;
    extent_list tile;         ///< in memory; empty: row-major
    extent_list grid_stride;  ///< bytes from tile to tile
    extent_list stride;       ///< bytes from element to element, within a tile
  };

  static std::size_t offset(const place& p, const extent_list& at) noexcept;
  void interval(std::size_t piece, std::size_t& first, std::size_t& last) const noexcept;
  void for_each_run_of_interval(std::size_t piece, const use_run& use) const;

  extent_list extents_;
  std::vector<place> places_;
  bool in_rows_ = false;  ///< runs are of one row
  bool tiled_ = false;
  bool same_tiles_ = true;
  std::size_t pieces_ = 0;
  std::uint64_t memory_bytes_ = 0;
  // Row-major:
  std::size_t piece_ = 1;             ///< elements
  std::size_t first_piece_ = 0;       ///< number of the first of this rank's
  std::size_t first_ = 0, last_ = 0;  ///< elements that they may have
  // Tiles:
  box_grid grid_;
  extent_list edges_;
};

}  // namespace ooc::detail
