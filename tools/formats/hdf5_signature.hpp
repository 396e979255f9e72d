// Facts about an HDF5 file that can be told without libhdf5.
#pragma once

#include <cstdint>
#include <optional>

namespace ooc::tool {

/// Where the superblock of a file begins that is open for reading: at byte 0, or after a user block, at 512, 1024, 2048
/// and so on.  Nothing: it is no HDF5 file, or cannot be read at any place.
std::optional<std::uint64_t> hdf5_superblock(int file);

}  // namespace ooc::tool
