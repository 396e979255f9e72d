#include "measure/control_group.hpp"

#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <system_error>

namespace bench {

bool put(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

bool control_group::make(const std::filesystem::path& parent, const std::string& name, const std::string& limit) {
  static unsigned made = 0;
  const auto folder = parent / ("oocbench-" + std::to_string(::getpid()) + "-" + std::to_string(made++));
  std::error_code why;
  if (!std::filesystem::create_directory(folder, why)) return false;
  if (put(folder / name, limit))
    folder_ = folder;
  else
    std::filesystem::remove(folder, why);
  return active();
}

control_group::~control_group() {
  if (!active()) return;
  // Its last process has been reaped, but the kernel may take a moment to notice.
  for (int i = 0; i < 100 && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(10'000);
}

void control_group::enter() const {
  if (active() && !put(folder_ / "cgroup.procs", std::to_string(::getpid())))
    throw std::runtime_error("cannot enter the control group " + folder_.string());
}

}  // namespace bench
