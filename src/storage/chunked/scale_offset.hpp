// HDF5's filter "scale-offset" (H5Pset_scaleoffset, H5Zscaleoffset.c): whole numbers less the least of them, and
// floating-point numbers times a power of ten, in as few bits as they need.
//
// A function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ooc::storage {

/// As undo() of chunk_filters.hpp.
std::string undo_scale_offset(std::span<const std::uint32_t> parameters, std::span<const std::byte>& now,
                              std::span<std::byte> next);

}  // namespace ooc::storage
