// Lets faults reach their handler in threads that block every signal.
//
// A touch of what is not in memory is a SIGSEGV or SIGBUS.  Where the thread blocks it, the kernel asks no handler and
// ends the process without a word.  Pools of threads block all signals to stay out of the application's way: numexpr's
// do, and uWSGI's.
//
// A thread can change its own mask only.  So it is sent the signal by which glibc has all threads make setuid(), which
// glibc lets nobody block, with a value of ours: the handler takes the two out of the mask that the kernel restores
// when it returns.  Whatever else comes by that signal goes on to glibc's handler.  It stays pending where glibc is
// just making the thread, until that is done; and for good where the thread is one of the kernel's (io_uring), which
// never looks. docs/decisions/0043-blocked-signals.md has the alternatives.
//
// Threads: any, one at a time; no fault handler.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/file_descriptor.hpp"

namespace ooc::storage {

struct named_thread {
  pid_t id = 0;
  std::string name;
};

/// Unblocks SIGSEGV and SIGBUS in the calling thread; those that it makes inherit that.
void unblock_faults_here() noexcept;

/// The same in all other threads of the process.  One that is within a system call may find it interrupted, once
/// (EINTR).  Returns those that could not be told: the processor or the C library is not one for which this is known,
/// or too many signals are pending (ulimit -i).
std::vector<named_thread> unblock_faults_elsewhere();

/// Tells in one system call whether there may be threads that were not there before.
class new_threads {
 public:
  new_threads();

  /// Another number than before where there may be; the same for ever where it cannot be known.
  std::uint64_t now() const noexcept;

 private:
  file_descriptor last_id_;  ///< of the machine or container: the number that the newest process or thread has
  file_descriptor
      folder_;  ///< where that is not told: how many there are, which does not tell of one that replaces another
};

}  // namespace ooc::storage
