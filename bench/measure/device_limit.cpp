#include "measure/device_limit.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

namespace bench {

device_limit::device_limit(const std::filesystem::path& file, std::uint64_t bytes_per_s) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return;
  const std::string device = std::to_string(major(s.st_dev)) + ":" + std::to_string(minor(s.st_dev));
  group_.make("/sys/fs/cgroup/blkio", "blkio.throttle.read_bps_device", device + " " + std::to_string(bytes_per_s));
}

}  // namespace bench
