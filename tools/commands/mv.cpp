#include "base/command.hpp"
#include "copying/copying.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

void remove_all(file_tree& tree, const entry& e) {
  if (e.kind == entry_kind::folder)
    for (const entry& below : tree.list(e.path)) remove_all(tree, below);
  tree.remove(e);
}

void check_all_unused(file_tree& tree, const entry& e) {
  if (e.kind == entry_kind::folder)
    for (const entry& below : tree.list(e.path)) check_all_unused(tree, below);
  tree.check_unused(e, "moved out of its store");
}

int run_mv(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  add_transfer_options(line);
  if (!line.parse(arguments)) return success;
  std::vector<transfer> far;
  const auto all = transfers(line, false);
  for (const transfer& t : all) {
    if (t.source.path.empty()) throw usage_mistake("the root folder cannot be moved");
    if (t.source.path == "-" || t.target == "-")
      throw usage_mistake("standard input and output cannot be moved; `ooc cp` copies them");
    if (t.from->identity() == t.to->identity()) continue;
    check_all_unused(*t.from, t.source);
    far.push_back(t);
  }
  for (const transfer& t : all)
    if (t.from->identity() == t.to->identity()) t.to->move(t.source, t.target);
  if (!far.empty())
    copy(line,
         "mv " + (far.size() == 1 ? far[0].source.path : std::to_string(far.size()) + " sources"),
         far, [](const transfer& t) { remove_all(*t.from, t.source); });
  return success;
}

}  // namespace

const command mv{
    "mv", "mv [options] SOURCE... DESTINATION",
    "Gives files and folders a new path; to another store, or from and to plain files, it copies "
    "and\n"
    "then removes.  The arguments are as in `ooc cp`.  Files that are there are replaced.",
    run_mv};

}  // namespace ooc::tool
