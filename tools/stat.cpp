#include <iostream>

#include "command.hpp"
#include "entry_text.hpp"
#include "progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

int run_stat(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("json", "for programs");
  line.positional("PATH");
  if (!line.parse(arguments)) return success;
  const std::string path = line.required("PATH");
  const located l = line.locate(path);
  const storage::entry e = l.store.core()->metadata().lookup(l.path);
  if (line.has("json")) {
    print(to_json(e));
    return success;
  }
  std::cout << "path      " << (e.path.empty() ? "/" : printable(e.path)) << "\n"
            << "holds     " << describe(e) << "\n";
  if (e.kind == storage::entry_kind::file) {
    std::cout << "size      " << e.size << " bytes (" << human_bytes(static_cast<double>(e.size))
              << ")" << (e.sparse ? ", sparse" : "") << "\n"
              << "striping  sn " << e.striping.sn << ", nn " << e.striping.nn << ", sf "
              << e.striping.sf << " bytes\n"
              << "id        " << e.id << "\n";
  }
  std::cout << "mode      " << mode_text(e) << ", owner " << e.owner << ", group " << e.group
            << "\n"
            << "created   " << time_text(e.created_ns) << "\n"
            << "changed   " << time_text(e.changed_ns) << "\n";
  for (const auto& [key, value] : e.attributes)
    std::cout << "attribute " << printable(key) << " = " << printable(value) << "\n";
  return success;
}

}  // namespace

const command stat{"stat", "stat [options] PATH", "Tells what is known of a file or folder.", run_stat};

}  // namespace ooc::tool
