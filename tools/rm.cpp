#include <set>

#include "command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

/// What is under `path`, itself last, so that folders are empty when their turn comes.
void collect(storage::metadata_service& metadata, const storage::entry& e,
             std::vector<std::string>& out) {
  if (e.kind == storage::entry_kind::folder)
    for (const storage::entry& below : metadata.list(e.path)) collect(metadata, below, out);
  out.push_back(e.path);
}

int run_rm(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("recursive,r", "folders with everything in them");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const auto paths = line.texts("PATH");
  if (paths.empty()) line.required("PATH");

  const ooc::store store = line.open_store();
  auto& metadata = store.core()->metadata();
  // Everything is looked at before anything is removed.
  std::vector<std::string> doomed;
  for (const std::string& path : paths) {
    const storage::entry e = metadata.lookup(path);
    if (e.path.empty()) throw usage_mistake("the root folder cannot be removed");
    if (line.has("recursive"))
      collect(metadata, e, doomed);
    else if (e.kind == storage::entry_kind::folder && !metadata.list(e.path).empty())
      throw usage_mistake("'" + e.path +
                          "' is a folder with something in it; give -r to remove it all");
    else
      doomed.push_back(e.path);
  }
  std::set<std::string> removed;
  for (const std::string& path : doomed)
    if (removed.insert(path).second) store.core()->remove(path);  // a path may be named twice
  return success;
}

}  // namespace

const command rm{"rm", "rm [-r] PATH...", "Removes files and folders.", run_rm};

}  // namespace ooc::tool
