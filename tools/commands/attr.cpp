#include <iostream>

#include "base/command.hpp"
#include "storage/service/commits.hpp"

namespace ooc::tool {

namespace {

int run_attr(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("ACTION");
  line.positional("PATH");
  line.positional("KEY");
  line.positional("VALUE");
  if (!line.parse(arguments)) return success;
  const std::string action = line.required("ACTION"), argument = line.required("PATH");
  if (action != "get" && action != "set" && action != "rm")
    throw usage_mistake("'" + action + "' is none of get, set and rm; usage: ooc " + self.usage);
  if (action != "set" && line.has("VALUE"))
    throw usage_mistake("too many arguments; usage: ooc " + std::string(self.usage));
  const std::string key = action == "get" ? line.text_or("KEY", "") : line.required("KEY");
  const std::string value = action == "set" ? line.required("VALUE") : "";

  const auto [store, path] = line.locate(argument);
  if (action == "set") {
    storage::set_attribute(*store.core(), path, key, value);
  } else if (action == "rm") {
    storage::remove_attribute(*store.core(), path, key);
  } else {
    const storage::entry e = store.core()->metadata().lookup(path);
    if (!line.has("KEY")) {
      for (const auto& [k, v] : e.attributes) std::cout << k << "=" << v << "\n";
      return success;
    }
    const auto found = e.attributes.find(key);
    if (found == e.attributes.end()) throw usage_mistake("'" + e.path + "' has no attribute '" + key + "'");
    std::cout << found->second << "\n";
  }
  return success;
}

}  // namespace

const command attr{"attr", "attr get PATH [KEY] | set PATH KEY VALUE | rm PATH KEY",
                   "Shows, sets and removes free attributes.", run_attr};

}  // namespace ooc::tool
