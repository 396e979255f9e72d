#include <set>

#include "base/command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

/// The entries under `path`, itself last, so that folders are empty when their turn comes.
void collect(const ooc::store& store, const storage::entry& e, std::vector<located>& out) {
  if (e.kind == storage::entry_kind::folder)
    for (const storage::entry& below : store.core()->metadata().list(e.path)) collect(store, below, out);
  out.push_back({store, e.path});
}

int run_rm(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with everything in them");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  // Everything is looked at before anything is removed.
  std::vector<located> doomed;
  for (const located& named : line.locate_all("PATH")) {
    auto& metadata = named.store.core()->metadata();
    const storage::entry e = metadata.lookup(named.path);
    if (e.path.empty()) throw usage_mistake("the root folder cannot be removed");
    if (!line.recursive() && e.kind == storage::entry_kind::folder && !metadata.list(e.path).empty())
      throw usage_mistake("'" + e.path + "' is a folder with something in it; give -r to remove it all");
    collect(named.store, e, doomed);
  }
  for (const located& d : doomed) {
    auto& core = *d.store.core();
    (void)core.claim_unused(core.metadata().lookup(d.path), "removed");
  }
  std::set<std::pair<std::string, std::string>> removed;
  for (const located& d : doomed)
    if (removed.insert({d.store.uuid(), d.path}).second) d.store.remove(d.path);  // a path may be named twice
  return success;
}

}  // namespace

const command rm{"rm", "rm [-r] PATH...",
                 "Removes files and folders; not a file that somebody has open for writing as an array.", run_rm};

}  // namespace ooc::tool
