#include <iostream>

#include "command.hpp"
#include "storage/wire/cluster_key.hpp"

namespace ooc::tool {

namespace {

int run(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("FILE");
  if (!line.parse(arguments)) return success;
  const std::string file = line.required("FILE");
  wire::cluster_key::random()->write(file);
  std::cout << file << "\n";
  return success;
}

}  // namespace

const command keygen{"keygen", "keygen FILE",
                     "Makes a cluster key; servers and clients need copies of it (mode 600).", run};

}  // namespace ooc::tool
