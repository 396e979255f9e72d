#include "command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

int run_mv(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("FROM");
  line.positional("TO");
  if (!line.parse(arguments)) return success;
  const std::string from = line.required("FROM"), to = line.required("TO");
  line.open_store().core()->metadata().rename(from, to);
  return success;
}

}  // namespace

const command mv{"mv", "mv FROM TO", "Gives a file or folder a new path; replaces nothing.", run_mv};

}  // namespace ooc::tool
