#include "base/command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

int run_mkdir(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("parents,p", "the folders above it too; no error where it is there already");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const auto paths = line.texts("PATH");
  if (paths.empty()) line.required("PATH");
  for (const std::string& path : paths) {
    const located l = line.locate(path);
    l.store.core()->metadata().mkdir(l.path, 0755, line.has("parents"));
  }
  return success;
}

}  // namespace

const command mkdir{"mkdir", "mkdir [-p] PATH...", "Makes folders.", run_mkdir};

}  // namespace ooc::tool
