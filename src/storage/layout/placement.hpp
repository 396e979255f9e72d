// Which nodes of a store have the stripe objects of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/striping.hpp"

namespace ooc::storage {

/// The most nodes of a store.
inline constexpr std::uint32_t max_store_nodes = 4096;

/// Nodes by stripe index.  Empty: node sn of the striping and those that follow it, and node 0 after the last one.
/// That is said of files only that were made before their store got further nodes, or that lie on none of these, and
/// do not begin at node 0 again: so everybody finds the same nodes, however many he knows the store to have.
using node_list = std::vector<std::uint32_t>;

/// The node that has this stripe index, of a store with so many nodes.
inline std::uint32_t node_of(const striping& s, const node_list& nodes, std::uint32_t stripe_index,
                             std::size_t store_nodes) {
  if (!nodes.empty()) return nodes[stripe_index];
  return static_cast<std::uint32_t>((s.sn + std::size_t{stripe_index}) % store_nodes);
}

/// The nodes in full.
inline node_list nodes_of(const striping& s, const node_list& nodes, std::size_t store_nodes) {
  node_list all(s.nn);
  for (std::uint32_t t = 0; t < s.nn; ++t) all[t] = node_of(s, nodes, t, store_nodes);
  return all;
}

/// "1,4".
std::string nodes_to_text(const node_list& nodes);
/// Throws usage_error (EINVAL) where it is no list of nodes.
node_list nodes_from_text(std::string_view text);

/// Attributes of the root folder that are such texts, which its owner sets.  New files get none of the nodes in
/// `ooc.drained`.  Those in `ooc.retired` have no stripe objects of any file, and may be gone.
inline constexpr std::string_view drained_key = "ooc.drained", retired_key = "ooc.retired";
/// Whether an attribute of a folder says how its store keeps files, as those two do, which is so in no other store: no
/// copy of the folder gets it.
constexpr bool is_of_store(std::string_view attribute) { return attribute.starts_with("ooc."); }

}  // namespace ooc::storage
