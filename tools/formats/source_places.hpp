// Where libhdf5 looks for the files that a dataset names.
#pragma once

#include <cstdint>
#include <string>

#include "formats/hdf5_types.hpp"

namespace ooc::tool::hdf5 {

/// The file of a virtual dataset's source: the first that can be opened of the places where libhdf5 looks.  Without a
/// handle, `why` says what is wrong with the file, by the place where one is.
handle open_source_file(hid_t dataset, const std::string& name, std::string& why);

/// The path of a raw file of an external dataset.
std::string place_of_raw_file(hid_t dataset, const std::string& name);

/// A name of the printf style for a number: "%b" becomes it, "%%" becomes "%".
std::string numbered(const std::string& name, std::uint64_t k);

}  // namespace ooc::tool::hdf5
