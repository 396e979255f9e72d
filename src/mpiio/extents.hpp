// OMPIO's list of extents as one request.
//
// OMPIO decodes the datatypes of memory and of the file view into a list of contiguous pieces.  Pieces that are evenly
// spaced in both become one nested entry again, so that a request for the columns of a matrix is as short in the
// message as it was in the program.  The order of the pieces stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpiio/file_handle.h"
#include "oocarray/request.hpp"

namespace ooc::mpiio {

/// A request whose memory offsets count from `base`.
struct placed_request {
  request wanted;
  std::byte* base = nullptr;
};

/// One past the last byte of the file that an extent touches.
std::uint64_t end_of(std::span<const ooc_mpiio_extent> extents);

/// Of what lies before `end` in the file.  Throws usage_error where an offset passes 2^63 - 1.
placed_request as_request(std::span<const ooc_mpiio_extent> extents, std::uint64_t end);

}  // namespace ooc::mpiio
