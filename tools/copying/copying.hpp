// The arguments of `ooc cp` and `ooc mv`, which come from stores and from this machine, and the
// copies they ask for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "copying/file_tree.hpp"

namespace ooc::tool {

/// Something that is there, and what it becomes.
struct transfer {
  std::shared_ptr<file_tree> from, to;
  storage::entry source;
  std::string target;
  bool exists = false;  ///< something is there, and is to be replaced
  bool moved = false;   ///< the source goes when it has been copied
};

/// Steps that could not be done: each is said at once, and the command goes on with the others, as cp(1) does.
class failures {
 public:
  void add(const std::string& what) { status_ = complain(what); }
  /// Of the command.
  int status() const noexcept { return status_; }

 private:
  int status_ = success;
};

/// The options of both commands and their arguments SOURCE... DESTINATION.
void add_transfer_options(command_line& line);

/// The meaning of SOURCE... DESTINATION: like cp(1), a folder that is there receives the sources, and only such a one
/// receives several.  Everything is looked at: usage_mistake for two things under one name, for a thing into itself,
/// and for a folder in the way of a file or a file in the way of a folder.  Leaves out, with -n, what is there
/// already; a folder that is there is not in the way of a folder where `merge`.  A source that is not there, or
/// cannot be looked at, is left to `bad`.  `within_files`: sources may be arrays within plain files, too.
std::vector<transfer> transfers(const command_line& line, bool merge, failures& bad, bool within_files = false);

/// Standard input or output, which "-" names where it is no path of a store.
bool is_standard_stream(const file_tree& tree, const std::string& path);

/// Copies them one after another, folders with everything in them; calls done() after each with all that was copied
/// whole, folders before what is in them.  What cannot be read or written is left to `bad`; with --salvage, of what
/// cannot be read the rest is copied.
void copy(const command_line& line, const std::string& label, const std::vector<transfer>& all,
          const std::function<void(const std::vector<transfer>&)>& done, failures& bad);

}  // namespace ooc::tool
