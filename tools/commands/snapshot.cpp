#include <cstdio>
#include <optional>

#include "base/command.hpp"

namespace ooc::tool {

namespace {

int run_snapshot(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("copy", "copy the bytes where a file system shares no space between files");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  auto given = line.texts("PATH");
  if (given.size() < 2) throw usage_mistake("give the paths of arrays, and then the name of their snapshot");
  const std::string name = given.back();
  given.pop_back();
  std::vector<std::string> paths;
  std::optional<ooc::store> store;
  for (const std::string& argument : given)
    for (const located& l : line.locate_matches(argument)) {
      if (store && store->uuid() != l.store.uuid())
        throw usage_mistake("'" + argument + "' is in another store than '" + given.front() +
                            "': a snapshot is of arrays of one store");
      store = l.store;
      paths.push_back(l.path);
    }
  for (const store_entry& e : store->snapshot(paths, name, {.copy = line.has("copy")}))
    std::printf("%s: %s\n", e.path.c_str(), e.attributes.at("ooc.snapshot_of").c_str());
  return success;
}

}  // namespace

const command snapshot{"snapshot", "snapshot [--copy] PATH... NAME",
                       "Keeps the last commit of arrays, at one moment, as PATH@NAME, sharing its space.",
                       run_snapshot};

}  // namespace ooc::tool
