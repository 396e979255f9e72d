// Data that a dataset of HDF5 takes from elsewhere: virtual datasets from others, external ones from raw files.
//
// libhdf5 gives the fill value, or zeros, for what is not there, without a word.  So all sources are looked at
// beforehand, where libhdf5 looks for them: that they can be opened, have the dataset, and are as large as is taken
// from them.
//
// A source whose name has a number (`%b`, the printf style) ends the array where none is there any more.  One that is
// missing before a later one (up to printf_gap further on) is noticed; that there were more behind the last is written
// nowhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/hdf5_slabs.hpp"

namespace ooc::tool::hdf5 {

inline constexpr hsize_t printf_gap = 256;

/// For H5Dopen2: later sources of a printf style than a missing one are found.
handle access_to_sources();

struct lost_elements {
  std::vector<std::string> reasons;  ///< each names a source; empty: nothing is lost
  handle selection;                  ///< which they are, in a space of the dataset's extents (one element: of a scalar)
  std::uint64_t count = 0;
};

/// The elements with lower <= i < upper of a dataset, opened with access_to_sources(), that are in no source.
lost_elements find_lost(hid_t dataset, const extents& lower, const extents& upper);

/// The first source of a virtual dataset with these properties of creation, in words; empty: it is none.
std::string first_source(hid_t creation);

/// The boxes that are together all elements with lower <= i < upper that are not lost.
slabs blocks_without(const lost_elements& lost, const extents& lower, const extents& upper);

/// Extents of a dataset; of a scalar one element, of none (H5S_NULL) no dimension.
extents extents_of_dataset(hid_t dataset);

}  // namespace ooc::tool::hdf5
