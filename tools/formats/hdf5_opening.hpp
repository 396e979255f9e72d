// Opening HDF5 files, and why one cannot be opened.
#pragma once

#include <string>

#include "formats/hdf5_types.hpp"

namespace ooc::tool::hdf5 {

/// Opens a file for reading; one that is being written in SWMR mode as such.
///
/// Throws io_error where it cannot be read at all, and usage_error that tells apart what is no HDF5 file, what somebody
/// is writing (errc::busy), what lies on a file system without locks, what a writer that is gone has left marked as
/// open, what is a part of the files of another driver, and what is damaged, each with its remedy.
handle open_for_reading(const std::string& file);

}  // namespace ooc::tool::hdf5
