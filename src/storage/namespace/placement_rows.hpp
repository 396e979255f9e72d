// The nodes of files in the metadata database: the column `stripe_map`, and which nodes new files get.
//
// For the holder of the database's mutex, in a transaction, where nothing else is said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "storage/layout/placement.hpp"
#include "storage/namespace/sqlite.hpp"

namespace ooc::storage {

/// Those that an attribute of the root folder lists.
node_list nodes_in(sqlite::connection& c, std::string_view key);

/// Changes the nodes of a new file to those that it gets, and its striping with them.  Throws usage_error (EINVAL)
/// where there are none left, and where no store has such nodes.
void choose_nodes(sqlite::connection& c, const std::string& name, ooc::striping& s, node_list& nodes);

/// Throws usage_error (EBUSY) where a file lies on one of these nodes that are about to be retired, also one that is
/// being made, or has no name any more.
void require_unused(sqlite::connection& c, node_list retired);

/// Of a file with these nodes; the store has the feature `stripe_map` from then on, where there are some.
std::vector<std::byte> map_column(sqlite::connection& c, const node_list& nodes);
node_list nodes_from_column(const std::vector<std::byte>& column);

/// The store whose database is this file, and which has had `had` nodes, gets more: files that begin at node 0 again
/// keep theirs, and new ones that lie on others have a list of them.  A transaction of its own, durable.
void note_growth_of_store(const std::filesystem::path& file, std::string_view store_uuid, std::uint32_t had);

}  // namespace ooc::storage
