#include "storage/object/node_folder.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

namespace ooc::storage {

std::string node_folder::relative(file_id id) {
  char text[48];
  std::snprintf(text, sizeof text, "shares/%02x/%016llx", static_cast<unsigned>(id & 0xff),
                static_cast<unsigned long long>(id));
  return text;
}

int node_folder::list(std::vector<file_id>& ids) const {
  namespace fs = std::filesystem;
  std::error_code code;
  // Either file counts: a creation or removal that was interrupted leaves one of them.
  for (fs::directory_iterator group(path_ / "shares", code), end; !code && group != end; group.increment(code)) {
    std::error_code unknown;
    const bool is_folder = group->is_directory(unknown);
    if (unknown && !group->is_symlink(code)) return unknown.value();
    if (!is_folder) continue;  // as a link that leads nowhere, or round
    for (fs::directory_iterator file(*group, code); !code && file != end; file.increment(code)) {
      const std::string name = file->path().filename().string();
      const std::string kind = name.size() > 16 ? name.substr(16) : "";
      if (kind != ".sum" && kind != ".data") continue;
      file_id id = 0;
      const auto [rest, error] = std::from_chars(name.data(), name.data() + 16, id, 16);
      if (error == std::errc{} && rest == name.data() + 16) ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (code == std::errc::no_such_file_or_directory) return 0;  // nothing was made yet
  return code.value();
}

}  // namespace ooc::storage
