#include "measure/memory_cap.hpp"

#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

namespace fs = std::filesystem;

bool put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

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

/// Makes a group and limits it; an empty path where that is not possible.
fs::path make_group(const fs::path& parent, bool v2, std::uint64_t bytes) {
  static unsigned made = 0;
  const fs::path folder = parent / ("oocbench-" + std::to_string(::getpid()) + "-" + std::to_string(made++));
  std::error_code ec;
  if (v2) put(parent / "cgroup.subtree_control", "+memory");
  if (!fs::create_directory(folder, ec)) return {};
  if (put(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"), std::to_string(bytes))) return folder;
  fs::remove(folder, ec);
  return {};
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
      folder_ = make_group(parent, v2, bytes);
      if (active()) return;
    }
  }
}

memory_cap::~memory_cap() {
  if (!active()) return;
  // Its last process has been reaped, but the kernel may take a moment to notice.
  for (int i = 0; i < 100 && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(10'000);
}

void memory_cap::enter() const {
  if (active() && !put(folder_ / "cgroup.procs", std::to_string(::getpid())))
    throw std::runtime_error("cannot enter the control group " + folder_.string());
}

bool can_cap_memory() { return memory_cap(std::uint64_t{1} << 30).active(); }

}  // namespace bench
