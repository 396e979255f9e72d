// Files of a store that get other stripe objects, on other nodes.
#pragma once

#include <cstdint>
#include <functional>

#include "storage/service/store_core.hpp"

namespace ooc::tool {

/// The bytes of `file` go to new stripe objects, which take the place of those that it has when they are whole: a
/// process that dies before leaves everything as it was.  Names, attributes and commits stay; who reads it meanwhile
/// reads on.  `nodes`: by stripe index; empty: as new_file says.  Throws errc::busy where somebody writes the file, and
/// EACCES for who may not.  `buffer`, `step`: as copy_bytes() has them.
void restripe(storage::store_core& core, const storage::entry& file, const striping& s, const storage::node_list& nodes,
              std::uint64_t buffer, const std::function<void(std::uint64_t)>& step);

}  // namespace ooc::tool
