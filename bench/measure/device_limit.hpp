// Holds the reads of a process from one device to so many bytes a second, as on a slower disk.
//
// A control group (cgroup v1, blkio).  Where none can be made, active() is false and nothing is limited.
#pragma once

#include <cstdint>
#include <filesystem>

#include "measure/control_group.hpp"

namespace bench {

class device_limit {
 public:
  /// The device that `file` is on.
  device_limit(const std::filesystem::path& file, std::uint64_t bytes_per_s);

  bool active() const noexcept { return group_.active(); }
  /// Moves the calling process into the group.
  void enter() const { group_.enter(); }

 private:
  control_group group_;
};

}  // namespace bench
