#include <iostream>

#include "base/command.hpp"

namespace ooc::tool {

namespace {

int run_init(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  if (!line.parse(arguments)) return success;
  const ooc::store store = line.open_store(true);
  std::cout << store.url() << " " << store.uuid() << "\n";
  return success;
}

}  // namespace

const command init{"init", "init", "Makes a store in new or empty folders.", run_init};

}  // namespace ooc::tool
