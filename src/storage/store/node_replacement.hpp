// An empty node in the place of one that was lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

struct replaced_node {
  std::uint64_t files = 0;            ///< that have bytes on the node
  std::vector<std::string> problems;  ///< a line for each file that could not be given its part
};

/// Gives each file that has bytes on this node, whose folder is a new one, its stripe object there.  Reads of what was
/// lost fail until it is written again, 4 KiB at a time.  What is there already stays, so it may be called again, also
/// while files are in use.  `step`: after each file, with the number of those that are done and of all.
replaced_node replace_objects(store_core& store, std::uint32_t node,
                              const std::function<void(std::uint64_t, std::uint64_t)>& step);

}  // namespace ooc::storage
