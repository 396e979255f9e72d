// How an array that is asked for will lie in file and memory: the choices of block, tile and
// buffers, and the checks against what a file holds.  Pure functions; they throw usage_error with
// the path in what().
#pragma once

#include <cstdint>
#include <string>

#include "oocarray/detail/array_core.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::detail {

struct array_plan {
  array_geometry geometry;
  storage::array_description description;  ///< of the file
  std::uint64_t buffers = 0;               ///< blocks in memory at most; 0: no limit
  striping stripes = {};                   ///< of the file; nn == 0: all nodes
};

/// `default_block`: the runtime's, bytes; `nodes`: of the store.
array_plan plan_new(const std::string& path, const array_request& r, std::uint64_t default_block, std::uint32_t nodes);

/// Checks element type, rank and extents against those recorded (errc::type_mismatch).
array_plan plan_existing(const std::string& path, const array_request& r, const storage::entry& file,
                         std::uint64_t default_block);

}  // namespace ooc::detail
