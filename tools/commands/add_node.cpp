#include <iostream>

#include "base/command.hpp"
#include "storage/store/local_store.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {

namespace {

int run_add_node(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("FOLDER", true);
  if (!line.parse(arguments)) return success;
  const std::string url = line.store_url("store");
  if (!url.starts_with("local:"))
    throw usage_mistake("folders are given to a local store; one on servers gets nodes by `ooc up --nodes +N`");
  const auto given = line.texts("FOLDER");
  if (given.empty()) line.required("FOLDER");
  const storage::store_url parsed = storage::parse_store_url(url);
  const auto folders = storage::local_folders(parsed);
  std::vector<std::filesystem::path> fresh;
  for (const std::string& f : given) fresh.push_back(folder_of_node(f));
  auto all = folders;
  all.insert(all.end(), fresh.begin(), fresh.end());
  const std::string wider = storage::local_url(all, storage::local_options_of(parsed));
  (void)storage::usable_folders(storage::parse_store_url(wider));  // before anything is changed
  storage::add_folders(folders, fresh);
  std::cout << wider << "\n";
  return success;
}

}  // namespace

const command add_node{"add-node", "add-node FOLDER...",
                       "Gives a local store further folders, on which new files lie, too; prints its new URL.\n"
                       "Files that are there stay where they are: `ooc restripe` deals them out over all.",
                       run_add_node};

}  // namespace ooc::tool
