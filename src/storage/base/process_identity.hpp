// Which process is it, and is it still alive?
//
// A process id alone says too little: ids are used again.  With the start time and the boot it was
// started in, a process has one identity for ever.  Used to find what a dead process left half
// done; so a doubt is always answered "alive".
#pragma once

#include <cstdint>
#include <string>

namespace ooc::storage {

struct process_identity {
  std::int64_t pid = 0;
  std::uint64_t start = 0;  ///< clock ticks since boot, from /proc/<pid>/stat
  std::string boot;         ///< /proc/sys/kernel/random/boot_id
  std::string pid_space;    ///< the pid namespace that `pid` counts in
};

/// Of the calling process.
process_identity this_process();

/// False only where the process has provably ended: another boot of this machine, no such process,
/// or another process with its id.  A process of another pid namespace (a container) counts as
/// alive.
bool may_be_alive(const process_identity& p);

}  // namespace ooc::storage
