// Holds the reads of a process from one device to so many bytes a second, as on a slower disk.
//
// A control group (cgroup v1, blkio), made by the constructor and removed by the destructor.  Where none can be made,
// active() is false and nothing is limited.
#pragma once

#include <cstdint>
#include <filesystem>

namespace bench {

class device_limit {
 public:
  /// The device that `file` is on.
  device_limit(const std::filesystem::path& file, std::uint64_t bytes_per_s);
  ~device_limit();
  device_limit(const device_limit&) = delete;
  device_limit& operator=(const device_limit&) = delete;

  bool active() const noexcept { return !folder_.empty(); }
  /// Moves the calling process into the group.
  void enter() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace bench
