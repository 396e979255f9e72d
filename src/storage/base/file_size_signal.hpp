// The limit on file sizes of a process (ulimit -f) as an error like others.
//
// A write past it fails with EFBIG, and besides, the kernel sends SIGXFSZ to the thread that wrote, which ends the
// process.  Threads of the library block it; a program of ours ignores it.
#pragma once

#include <pthread.h>

#include <csignal>

namespace ooc {

/// In the calling thread, which is one of the library's.
inline void block_file_size_signal() noexcept {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &s, nullptr);
}

}  // namespace ooc
