// Files of a store that get other stripe objects, on other nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

/// The bytes of `file` go to new stripe objects, which take the place of those that it has when they are whole: a
/// process that dies before leaves everything as it was.  Names, attributes and commits stay; who reads it meanwhile
/// reads on.  `nodes`: by stripe index; empty: as new_file says.  Throws errc::busy where somebody writes the file, and
/// EACCES for who may not.  `buffer`, `step`: as copy_bytes() has them.
void restripe(storage::store_core& core, const storage::entry& file, const striping& s, const storage::node_list& nodes,
              std::uint64_t buffer, const std::function<void(std::uint64_t)>& step);

/// Files of one store that are to be moved, and where to.
class move_list {
 public:
  void add(storage::entry file, const striping& s, storage::node_list nodes);
  bool empty() const noexcept { return moves_.empty(); }
  /// Moves them one after another, with a progress bar of this name.  How many could not be moved, which is said of
  /// each; those that are removed meanwhile do not count.  `line` has the options of add_moving_options().
  std::size_t run(const command_line& line, storage::store_core& core, const std::string& name) const;

 private:
  struct move {
    storage::entry file;
    ooc::striping striping;
    storage::node_list nodes;
  };
  std::vector<move> moves_;
  std::uint64_t bytes_ = 0;
};

void add_moving_options(command_line& line);

}  // namespace ooc::tool
