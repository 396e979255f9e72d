#include <cstdio>
#include <iostream>
#include <map>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

struct used {
  std::string path;
  std::uint64_t bytes = 0, unpacked = 0, files = 0;
  bool folder = false;
};

/// Adds a line for each folder below, after those in it, as du(1) does, and returns that of `e`.
used count(storage::metadata_service& metadata, const entry& e, std::vector<used>& folders) {
  used mine{e.path, 0, 0, 0, e.kind == entry_kind::folder};
  if (!mine.folder) {
    mine.bytes = storage::stored_size(e);
    mine.unpacked = e.codec.empty() ? mine.bytes : e.size;
    mine.files = 1;
    return mine;
  }
  for (const entry& below : metadata.list(e.path)) {
    const used part = count(metadata, below, folders);
    mine.bytes += part.bytes;
    mine.unpacked += part.unpacked;
    mine.files += part.files;
    if (part.folder) folders.push_back(part);
  }
  return mine;
}

/// Without -h, which is du(1)'s word for sizes such as 1.5 GiB; those are usual here.
std::vector<std::string> without_h(std::vector<std::string> arguments) {
  for (std::string& a : arguments)
    if (a.size() > 1 && a[0] == '-' && a[1] != '-') std::erase(a, 'h');
  std::erase(arguments, "-");
  return arguments;
}

int run_du(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("summarize,s", "only what is named, without the folders in it");
  line.option()("bytes,b", "sizes in bytes");
  line.option()("json", "for programs");
  line.positional("PATH", true);
  if (!line.parse(without_h(arguments))) return success;
  std::vector<used> all;
  const auto named = line.texts("PATH").empty() ? std::vector<located>{line.locate("")} : line.locate_all("PATH");
  for (const auto& [store, path] : named) {
    auto& metadata = store.core()->metadata();
    std::vector<used> folders;
    const used sum = count(metadata, metadata.lookup(path), folders);
    if (!line.has("summarize")) all.insert(all.end(), folders.begin(), folders.end());
    all.push_back(sum);
  }
  if (line.has("json")) {
    nlohmann::json j = nlohmann::json::array();
    for (const used& u : all)
      j.push_back({{"path", u.path}, {"bytes", u.bytes}, {"unpacked", u.unpacked}, {"files", u.files}});
    print(j);
    return success;
  }
  for (const used& u : all) {
    const auto size = [&](std::uint64_t n) {
      return line.has("bytes") ? std::to_string(n) : human_bytes(static_cast<double>(n));
    };
    std::printf("%-11s %s%s%s\n", size(u.bytes).c_str(), printable(u.path).c_str(), u.folder ? "/" : "",
                u.unpacked != u.bytes ? (", unpacked " + size(u.unpacked)).c_str() : "");
  }
  return std::fflush(stdout) == 0 ? success : failed;
}

}  // namespace

const command du{"du", "du [options] [PATH]...",
                 "Adds up the sizes of files below each folder; sparse files count in full, arrays without what they "
                 "may still grow to, packed ones with what they take; what they hold stands behind.",
                 run_du};

}  // namespace ooc::tool
