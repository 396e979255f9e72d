// What the elements of a file are and in which order they lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ooc::storage {

/// What the elements of a file are and how they are laid out; empty for a plain byte file.
struct array_description {
  std::string element_type;             ///< "f8", "c16", "i4", "struct24" ...; empty: not recorded
  std::uint32_t element_size = 1;       ///< bytes
  std::vector<std::uint64_t> extents;   ///< elements in each dimension, slowest first
  std::uint64_t max_extent = 0;         ///< limit of the first extent; 0: the present one
  std::vector<std::uint64_t> tile;      ///< tile shape in the file; empty: row-major

  bool operator==(const array_description&) const = default;
};

}  // namespace ooc::storage
