// resize() of an array.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// Changes the extents.  Collective over the array's group, with no other use of the array
/// meanwhile; what one rank throws, all throw.  `may_move`: elements of a row-major image in memory
/// may come to other addresses, which another extent than the first takes.
void resize_array(shared_array& a, std::span<const std::uint64_t> extents, bool may_move);

}  // namespace ooc::detail
