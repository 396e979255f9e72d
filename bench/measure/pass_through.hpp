// A folder that passes its files on to another one through FUSE, and adds nothing: what a mount costs that has no
// store behind it.  Files only, in one folder.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace bench {

class pass_through {
 public:
  /// Mounts `source` at `folder`, served by a child process.  Throws std::runtime_error.
  pass_through(std::filesystem::path source, std::filesystem::path folder);
  ~pass_through();
  pass_through(const pass_through&) = delete;
  pass_through& operator=(const pass_through&) = delete;

 private:
  pid_t pid_ = -1;
};

/// Waits until something is mounted at `folder`.  False where that takes longer than 10 s.
bool is_mounted_soon(const std::filesystem::path& folder, dev_t before);
dev_t device_of(const std::filesystem::path& folder);

}  // namespace bench
