// The type and the order of the elements of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ooc::storage {

/// The type of the elements of a file and their layout; empty for a plain byte file.
struct array_description {
  std::string element_type;            ///< "f8", "c16", "i4", "struct24" ...; empty: not recorded
  std::uint32_t element_size = 1;      ///< bytes
  std::vector<std::uint64_t> extents;  ///< elements in each dimension, slowest first
  /// Limits of resize().  Empty: the present extents.  One number: of the first extent, the others stay.  As many as
  /// there are extents, in tiled files only: of all; tiles are then numbered in the grid of these, so that no tile
  /// moves when an extent changes.
  std::vector<std::uint64_t> max_extents;
  /// Where all extents have limits: the greatest that they have been.  What lies beyond was never written.
  std::vector<std::uint64_t> reached;
  std::vector<std::uint64_t> tile;  ///< tile shape in the file; empty: row-major

  bool operator==(const array_description&) const = default;
};

/// True if resize() may change any extent, and not only the first.
inline bool has_reserved_grid(const array_description& a) noexcept {
  return !a.tile.empty() && a.extents.size() > 1 && a.max_extents.size() == a.extents.size();
}

/// Bytes of the file of an array without tiles that have a place but are not part of it; else as array_file_bytes() of
/// box_requests.hpp.
std::uint64_t array_stored_bytes(const array_description& a);

/// The extents are these from now on.
inline void set_extents(array_description& a, const std::vector<std::uint64_t>& extents) {
  a.extents = extents;
  for (std::size_t k = 0; k < a.reached.size() && k < extents.size(); ++k)
    a.reached[k] = std::max(a.reached[k], extents[k]);
}

}  // namespace ooc::storage
