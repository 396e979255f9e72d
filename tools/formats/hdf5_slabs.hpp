// Selections of HDF5 as regular slabs, which may go on without end in one dimension, as those of virtual datasets do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/hdf5_types.hpp"

namespace ooc::tool::hdf5 {

using extents = std::vector<std::uint64_t>;
using counts = std::vector<hsize_t>;

/// In each dimension `count` blocks of `block` elements, the first at `start`, one for each `stride`.
struct slab {
  counts start, stride, count, block;
  int endless = -1;    ///< the dimension that goes on
  bool whole = false;  ///< everything there is, of whatever extents

  bool by_count() const { return endless >= 0 && count[static_cast<std::size_t>(endless)] == H5S_UNLIMITED; }
};
using slabs = std::vector<slab>;

handle space_of(const extents& n);

/// The elements with lower <= i < upper.
slab box_of(const extents& lower, const extents& upper);

/// Of a space all of whose elements are selected, or a regular hyperslab; nothing: of another.
std::optional<slab> slab_of(hid_t space);

/// Changes what is selected in a space.  (H5Scombine_select() of libhdf5 1.10 dies of what has no elements.)
void select(hid_t space, H5S_seloper_t how, const slab& s);

/// Elements that are selected.
std::uint64_t points(hid_t space);

/// The boxes of which a selection consists.
slabs blocks_of(hid_t space);

std::uint64_t elements_of(const slab& s);

/// The part of a slab in an array of these extents, from row `from` of its endless dimension on; the last blocks may
/// reach past the end.
slabs inside(slab s, const extents& n, hsize_t from = 0);

/// Rows of the endless dimension that a slab selects of a dataset that is so large in it.
hsize_t rows_within(const slab& s, hsize_t extent);

/// Elements first to last - 1, in the order in which they lie in a file.
slabs range(const extents& n, std::uint64_t first, std::uint64_t last);

}  // namespace ooc::tool::hdf5
