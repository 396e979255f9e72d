#include "storage/base/process_identity.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

namespace ooc::storage {

namespace {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string pid_namespace() {
  std::array<char, 64> target{};
  const ssize_t n = ::readlink("/proc/self/ns/pid", target.data(), target.size());
  return n > 0 ? std::string(target.data(), static_cast<std::size_t>(n)) : std::string();
}

struct process_state {
  char state = '?';
  std::uint64_t start = 0;
};

/// Fields 3 and 22 of /proc/<pid>/stat; the name in field 2 may hold spaces and brackets.
std::optional<process_state> state_of(std::int64_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  process_state p;
  fields >> p.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  if (!(fields >> p.start)) return std::nullopt;
  return p;
}

}  // namespace

process_identity this_process() {
  const auto pid = static_cast<std::int64_t>(::getpid());
  return {pid, state_of(pid).value_or(process_state{}).start, boot_id(), pid_namespace()};
}

bool may_be_alive(const process_identity& p) {
  const std::string boot = boot_id();
  if (boot.empty() || p.boot.empty()) return true;
  if (boot != p.boot) return false;
  if (pid_namespace() != p.pid_space) return true;
  if (::kill(static_cast<pid_t>(p.pid), 0) != 0 && errno == ESRCH) return false;
  const auto now = state_of(p.pid);
  if (!now) return true;
  if (now->state == 'Z' || now->state == 'X') return false;  // ended, not yet waited for
  return p.start == 0 || now->start == p.start;
}

}  // namespace ooc::storage
