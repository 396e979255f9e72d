#include "measure/device_limit.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {
namespace {

bool put(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

}  // namespace

device_limit::device_limit(const std::filesystem::path& file, std::uint64_t bytes_per_s) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return;
  const std::filesystem::path folder = "/sys/fs/cgroup/blkio/oocbench-" + std::to_string(::getpid());
  std::error_code why;
  if (!std::filesystem::create_directory(folder, why)) return;
  const std::string device = std::to_string(major(s.st_dev)) + ":" + std::to_string(minor(s.st_dev));
  if (put(folder / "blkio.throttle.read_bps_device", device + " " + std::to_string(bytes_per_s)))
    folder_ = folder;
  else
    std::filesystem::remove(folder, why);
}

device_limit::~device_limit() {
  if (!active()) return;
  // Its last process has been reaped, but the kernel may take a moment to notice.
  for (int i = 0; i < 100 && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(10'000);
}

void device_limit::enter() const {
  if (active() && !put(folder_ / "cgroup.procs", std::to_string(::getpid())))
    throw std::runtime_error("cannot enter the control group " + folder_.string());
}

}  // namespace bench
