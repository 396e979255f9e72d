// Elements of HDF5 that our names of element types do not say, as descriptions (element_description.hpp), and back:
//
//     compound                         a record; members keep their places
//     array                            a field with a shape
//     string of fixed size             S
//     opaque with the tag NUMPY:<type> that type; so h5py stores times, and we U texts as well
//
#pragma once

#include <string>

#include "formats/hdf5_types.hpp"
#include "storage/layout/element_description.hpp"

namespace ooc::tool::hdf5 {

/// Throws usage_error (errc::type_mismatch) that begins with `what` and names the member, where there is none.
element_type described_element_of(hid_t type, const std::string& what);

/// Whether libhdf5 leaves the bytes of elements as they are that it reads as `in_memory`, which element_of() has said.
bool is_stored_as(hid_t stored, hid_t in_memory);

/// The type of an HDF5 file for elements that are described so.  Throws the same.
handle type_described(const storage::element_description& d, const std::string& what);

}  // namespace ooc::tool::hdf5
