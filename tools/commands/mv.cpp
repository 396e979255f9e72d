#include <filesystem>

#include "base/command.hpp"
#include "copying/copying.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// Files that have come into a folder since then were not copied, and stay.
void remove_copied(const std::vector<transfer>& items, failures& bad) {
  for (auto t = items.rbegin(); t != items.rend(); ++t) try {
      t->from->remove(t->source);
    } catch (const error& e) {
      bad.add(e.what());
    }
}

void check_all_unused(file_tree& tree, const entry& e) {
  if (tree.identity().empty()) return;  // who has a plain file open is not known
  if (e.kind == entry_kind::folder)
    for (const entry& below : tree.list(e.path)) check_all_unused(tree, below);
  tree.check_unused(e, "moved out of its store");
}

int run_mv(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  add_transfer_options(line);
  if (!line.parse(arguments)) return success;
  std::vector<transfer> far;
  failures bad;
  const auto all = transfers(line, false, bad);
  for (const transfer& t : all) {
    if (t.source.path.empty()) throw usage_mistake("the root folder cannot be moved");
    if (is_standard_stream(*t.from, t.source.path) || is_standard_stream(*t.to, t.target))
      throw usage_mistake("standard input and output cannot be moved; `ooc cp` copies them");
    if (t.from->identity() == t.to->identity()) continue;
    std::error_code ec;  // a folder that cannot be asked for is an error of the move
    if (t.source.kind == entry_kind::folder && t.from->identity().empty() &&
        std::filesystem::is_symlink(std::filesystem::path(t.source.path + "/").parent_path(), ec))
      throw usage_mistake("'" + t.source.path + "' is a symbolic link to a folder; move the folder that it leads to");
    try {
      check_all_unused(*t.from, t.source);
      far.push_back(t);
      far.back().moved = true;
    } catch (const error& e) {
      bad.add(e.what());
    }
  }
  for (const transfer& t : all)
    if (t.from->identity() == t.to->identity()) try {
        t.to->move(t.source, t.target);
      } catch (const error& e) {
        bad.add(e.what());
      }
  if (!far.empty())
    copy(
        line, "mv " + (far.size() == 1 ? far[0].source.path : std::to_string(far.size()) + " sources"), far,
        [&](const std::vector<transfer>& items) { remove_copied(items, bad); }, bad);
  return bad.status();
}

}  // namespace

const command mv{"mv", "mv [options] SOURCE... DESTINATION",
                 "Gives files and folders a new path; to another store, or from and to plain files, it copies "
                 "and\n"
                 "then removes.  The arguments are as in `ooc cp`.  Files that are there are replaced.  What cannot\n"
                 "be moved is named and stays; the others are moved, and the status is 1.",
                 run_mv};

}  // namespace ooc::tool
