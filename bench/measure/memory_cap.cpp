#include "measure/memory_cap.hpp"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

namespace fs = std::filesystem;

/// The mount point of a hierarchy: v1 with the memory controller, or v2.
fs::path mount_point(bool v2) {
  std::ifstream in("/proc/self/mounts");
  for (std::string device, where, type, opts, rest; in >> device >> where >> type >> opts;) {
    std::getline(in, rest);
    if (v2 ? type == "cgroup2" : type == "cgroup" && ("," + opts + ",").find(",memory,") != std::string::npos)
      return where;
  }
  return {};
}

/// The group of this process, relative to the mount point ("/a/b").
std::string own_group(bool v2) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : ("," + controllers + ",").find(",memory,") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

}  // namespace

memory_cap::memory_cap(std::uint64_t bytes) {
  if (bytes == 0) return;
  for (const bool v2 : {false, true}) {
    const fs::path mount = mount_point(v2);
    if (mount.empty()) continue;
    // v2 gives no limits to children of a group that holds processes: its parent may do.
    const fs::path own = mount / fs::path(own_group(v2)).relative_path();
    std::vector<fs::path> parents{own, own.parent_path(), mount};
    for (const fs::path& parent : parents) {
      if (v2) put(parent / "cgroup.subtree_control", "+memory");
      if (group_.make(parent, v2 ? "memory.max" : "memory.limit_in_bytes", std::to_string(bytes))) return;
    }
  }
}

bool can_cap_memory() { return memory_cap(std::uint64_t{1} << 30).active(); }

}  // namespace bench
