// Element types of HDF5 and ours, and how libhdf5's handles and errors are held.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "oocarray/hdf5.hpp"

namespace ooc::tool::hdf5 {

using ooc::detail::hdf5::handle;
using ooc::detail::hdf5::last_error;

/// libhdf5 keeps its messages to itself; they come out of last_error().  For each thread that calls
/// it.
void be_quiet();

struct element_type {
  std::string name;              ///< as in element_type.hpp
  std::uint32_t size = 0;        ///< bytes
  handle type;                   ///< as the elements lie in memory
  std::string description = {};  ///< where the name does not say it, see element_description.hpp
};

/// The elements of a dataset or an attribute.  Throws usage_error (errc::type_mismatch) that begins
/// with `what` for those that we have no name for.
element_type element_of(hid_t type, const std::string& what);
/// The type that our elements have in a file, which is also that in memory.  Throws the same.
element_type element_named(const std::string& name, std::uint32_t size, const std::string& what);
/// x86's long double, as h5py writes it.
bool is_long_double(hid_t type);

}  // namespace ooc::tool::hdf5
