// Commits of arrays, and the way back to the last one.
//
// Both begin with what brings all ranks to the same state: a sync, or forgetting everything.  Then rank 0 alone asks
// the nodes and the metadata service (storage::commit), and tells the others what has come of it.  Between a commit
// that is prepared and the answer nothing may be written; where the answer does not come, to rank 0 or to another rank,
// the arrays get nodes that refuse everything.
//
// Collective: what one rank throws, all throw.  Threads: one, with no other use of the arrays meanwhile.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "oocarray/commit.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// As ooc::commit().
void commit_arrays(std::span<shared_array* const> arrays, const std::map<std::string, std::string>& attributes);

/// As ooc_array::roll_back().
void roll_back_array(shared_array& a);
/// Whether that leaves the extents as they are, as it does those of an array without commits.
bool has_committed_extents(const shared_array& a);

/// Empty where the array keeps none.
std::optional<commit_info> last_commit_of(const shared_array& a);

}  // namespace ooc::detail
