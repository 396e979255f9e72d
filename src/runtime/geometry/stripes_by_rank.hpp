// Stripes for placement::by_rank: each rank's part of an array on a node of the rank's own host.
//
// Every rank asks the store which nodes are on its host (io_service::find_locality), and learns all answers.  The
// first node and the number of nodes are chosen so that the round-robin order brings each rank's stripe to a node
// of its host.  Nothing else is recorded: as many ranks that open the file later find their parts in the stripes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oocarray/striping.hpp"
#include "runtime/geometry/array_geometry.hpp"

namespace ooc::detail {

/// `near` has for each rank the nodes on its host, of the `nodes` of the store.  The part of rank r
/// (equal_parts(), and so part_of()) is stripe r.  Over as many nodes as can be, from the first that
/// fits.  The same on all ranks.  Throws usage_error (errc::invalid_request), naming the array at
/// `path` and what is in the way.
striping stripes_by_rank(const std::string& path, const array_geometry& g,
                         std::span<const std::vector<std::uint64_t>> near, std::uint32_t nodes);

}  // namespace ooc::detail
