// Emptying a node, so that it can go.
//
// The node gets no new files from the moment it is marked; files that lie on it are moved by who asks for it, with
// other nodes for their stripe objects; when nothing is left, the node is retired: nobody waits for it, or opens its
// folder, any more.  Its number stays, and so do those of the others.  Each step can be repeated.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// Nodes that new files do not get.
node_list drained_nodes(store_core& store);
/// Those of them that are empty, and may have gone.
node_list retired_nodes(store_core& store);

/// Marks the node, or takes the mark away.  Throws usage_error where the store has no such node, where it is retired,
/// and where no other node would be left for new files.
void set_drained(store_core& store, std::uint32_t node, bool drained);

/// Where the stripe objects of `file` may go instead: to those that have got the fewest bytes so far, as `moved`
/// counts, and fewer nodes where there are no others.  Its striping with that.
struct new_place {
  ooc::striping striping;
  node_list nodes;
};
bool lies_on(const store_core& store, const entry& file, std::uint32_t node);
new_place place_without(store_core& store, const entry& file, const node_list& drained,
                        std::map<std::uint32_t, std::uint64_t>& moved);

/// Stripe objects that are on the node.
std::size_t objects_on(store_core& store, std::uint32_t node);

/// The node is empty, and nobody waits for it any more.  False for the first folder of a local store, which stays, as
/// it has the metadata.  Throws usage_error (EBUSY) where a file lies there that has no stripe objects there yet, as
/// its maker began before the node was marked.
bool retire(store_core& store, std::uint32_t node);

}  // namespace ooc::storage
