#include <iomanip>
#include <iostream>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

void collect(storage::metadata_service& metadata, const std::string& path, bool recursive, std::vector<entry>& out) {
  for (entry& e : metadata.list(path)) {
    const bool descend = recursive && e.kind == entry_kind::folder;
    const std::string below = e.path;
    out.push_back(std::move(e));
    if (descend) collect(metadata, below, recursive, out);
  }
}

int run_ls(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("long,l", "mode, owner, size and what it holds");
  line.recursive_option("folders below as well");
  line.option()("directory,d", "folders themselves, not what is in them");
  line.option()("json", "for programs");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;

  std::vector<entry> entries;
  const auto all = line.texts("PATH").empty() ? std::vector<located>{line.locate("")} : line.locate_all("PATH");
  for (const auto& [store, path] : all) {
    auto& metadata = store.core()->metadata();
    if (line.has("directory"))
      entries.push_back(metadata.lookup(path));
    else
      collect(metadata, path, line.recursive(), entries);
  }
  if (line.has("json")) {
    nlohmann::json j = nlohmann::json::array();
    for (const entry& e : entries) j.push_back(to_json(e));
    print(j);
    return success;
  }
  for (const entry& e : entries) {
    if (line.has("long"))
      std::cout << mode_text(e) << ' ' << std::setw(5) << e.owner << ' ' << std::setw(5) << e.group << ' '
                << std::setw(9) << (e.kind == entry_kind::file ? human_bytes(static_cast<double>(e.size)) : "-") << "  "
                << time_text(e.changed_ns) << "  ";
    std::cout << printable(e.path) << (e.kind == entry_kind::folder ? "/" : "");
    if (line.has("long") && !e.array.extents.empty()) std::cout << "  (" << describe(e) << ")";
    std::cout << "\n";
  }
  return success;
}

}  // namespace

const command ls{"ls", "ls [options] [PATH|URL]...", "Lists folders, or a store; 'runs/*.dat' what matches.", run_ls};

}  // namespace ooc::tool
