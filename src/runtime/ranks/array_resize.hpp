// resize() of an array.
//
// It begins with a sync().  The borders between parts move with the end of the array, and a block that comes to a
// rank's part may be written whole from then on, so no old copy of it may be left.  All ranks drop the blocks that
// will be cut off.  Rank 0 changes file and entry and tells the others the new entry; each rank keeps its own
// capability.  docs/decisions/0040-resize-any-axis.md has the alternatives.
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
