#include "oocarray/detail/chunk_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "oocarray/error.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number_in(const std::string& file) {
  std::uint64_t n = 0;
  std::ifstream in(file);
  return in >> n ? n : none;  // "max" is no number
}

std::uint64_t available_on_machine() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("MemAvailable:")) {
      std::uint64_t kib = 0;
      if (std::istringstream(line.substr(13)) >> kib) return kib * 1024;
    }
  return none;
}

/// The least of the group's limit and those above it; of both versions of control groups.
std::uint64_t limit_of_group() {
  std::uint64_t least = none;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      if (path == "/") path.clear();
      least = std::min(least, number_in(root + path + (unified ? "/memory.max" : "/memory.limit_in_bytes")));
      if (path.find('/') == path.npos) break;
    }
  }
  return least;
}

std::uint64_t limit_of_addresses() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : none;
}

}  // namespace

memory_limit available_memory() {
  const memory_limit all[] = {{available_on_machine(), "that the machine has available"},
                              {limit_of_group(), "of the control group (cgroup)"},
                              {limit_of_addresses(), "of the process's address space (ulimit -v)"}};
  return *std::min_element(std::begin(all), std::end(all),
                           [](const memory_limit& a, const memory_limit& b) { return a.bytes < b.bytes; });
}

void check_chunk_memory(const chunk_needs& chunk, const memory_limit& limit) {
  if (chunk.needed <= limit.bytes) return;
  throw usage_error(std::make_error_code(std::errc::not_enough_memory),
                    chunk.what + " has chunks of " + chunk.extents + ", " + std::to_string(chunk.bytes) +
                        " bytes, which are in memory whole; that takes " + std::to_string(chunk.needed) +
                        " bytes of memory, of " + std::to_string(limit.bytes) + " " + limit.whose + ": " +
                        chunk.remedy);
}

}  // namespace ooc::detail
