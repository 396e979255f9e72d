#include <iostream>

#include "base/command.hpp"
#include "oocarray/error.hpp"
#include "storage/store/store_upgrade.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {

namespace {

std::vector<std::filesystem::path> named_folders(const command_line& line) {
  std::vector<std::string> names = line.texts("STORE");
  if (names.empty()) names.push_back(line.store_url("store"));
  std::vector<std::filesystem::path> folders;
  for (const std::string& name : names) {
    if (name.starts_with("ooc:"))
      throw usage_mistake("'" + name + "': stop the servers of that store, then name their folders");
    if (name.starts_with("local:"))
      for (auto& f : storage::local_folders(storage::parse_store_url(name)))
        folders.push_back(std::move(f));
    else
      folders.push_back(std::filesystem::absolute(name));
  }
  return folders;
}

int run_upgrade(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("metadata", po::value<std::string>()->value_name("FOLDER"),
                "folder of the metadata server, or a copy of it, for I/O servers' folders that are "
                "upgraded alone; it is only read");
  line.option()("verbose,v", "say what is done");
  line.positional("STORE", true);
  if (!line.parse(arguments)) return success;
  const storage::upgrade_result r = storage::upgrade_store(
      named_folders(line), line.text_or("metadata", ""), [&](const std::string& what) {
        if (line.has("verbose")) std::cout << what << std::endl;
      });
  for (const std::string& p : r.problems) std::cout << p << "\n";
  std::cout << r.objects << " stripe objects converted";
  if (r.already != 0) std::cout << ", " << r.already << " had been before";
  std::cout << "; the store has version 2 of the disk format\n";
  return r.problems.empty() ? success : problems_found;
}

}  // namespace

const command upgrade{"upgrade", "upgrade [options] [URL | FOLDER...]",
                      "Converts a store of an older disk format, in place.", run_upgrade};

}  // namespace ooc::tool
