// How a product of matrices divides the memory that it has; arithmetic without I/O, in elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ooc::detail {

struct multiply_facts {
  std::size_t rows = 1;     ///< of a and c
  std::size_t depth = 1;    ///< columns of a, rows of b
  std::size_t columns = 1;  ///< of b and c
  std::size_t element_size = 8;
  bool b_in_memory = false;
  bool c_in_memory = false;
};

/// c is computed in tiles of `tile_rows` by `tile_columns`, one row of tiles after the other.  For a tile, panels of a
/// (tile_rows by depth_a) and, within them, of b (depth_b by tile_columns) pass by.  Where depth_a is the whole
/// depth, a panel serves all tiles of its row; where b is one panel, it is read once.  Everything else
/// has two buffers.
struct multiply_plan {
  std::size_t tile_rows = 0;  ///< 0: nothing fits
  std::size_t tile_columns = 0;
  std::size_t depth_a = 0;  ///< a multiple of depth_b, or the whole depth
  std::size_t depth_b = 0;
  std::size_t buffers_a = 2;
  std::size_t buffers_b = 2;
  std::uint64_t passes_a = 1;
  std::uint64_t passes_b = 1;

  std::uint64_t elements(const multiply_facts& f) const;  ///< of memory
};

/// The plan that takes a disk least time, within so many bytes.
multiply_plan plan_multiply(const multiply_facts& f, std::uint64_t memory_bytes);
/// The least memory in which any plan fits.
std::uint64_t least_multiply_memory(const multiply_facts& f);

}  // namespace ooc::detail
