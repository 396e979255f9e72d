// resize() of an array.
//
// It begins with a sync().  The borders between parts move with the end of the array, and a block that comes to a
// rank's part may be written whole from then on, so no old copy of it may be left.  All ranks drop the blocks that
// will be cut off.  Rank 0 changes file and entry and tells the others the new entry; each rank keeps its own
// capability.  docs/decisions/0040-resize-any-axis.md has the alternatives.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// The blocks that other elements come to.
enum class extents_change { blocks_at_the_edge, all_blocks };

/// Exchanges the file for one with these extents: each rank forgets the blocks whose elements change, modified or not;
/// rank 0 calls `change`, which returns the file as it then is, and tells the others.  Collective, with no other use of
/// the array; where `change` throws, all throw, and the array is as it was but for what was forgotten.  Where a rank
/// does not learn of the change, or cannot use the file, all throw, and the array must be opened again.
void change_file(shared_array& a, const std::string& call, std::span<const std::uint64_t> extents, extents_change which,
                 const std::function<storage::opened_file()>& change);

/// Changes the extents.  Collective over the array's group, with no other use of the array
/// meanwhile; what one rank throws, all throw.  `may_move`: elements of a row-major image in memory
/// may come to other addresses, which another extent than the first takes.
void resize_array(shared_array& a, std::span<const std::uint64_t> extents, bool may_move);

}  // namespace ooc::detail
