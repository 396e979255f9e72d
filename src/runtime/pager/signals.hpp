// Keeps signal handlers of the program out while a thread holds a lock or a block of the pager.
//
// A handler that touches an array would otherwise wait for the very thread that it interrupted.
#pragma once

#include <pthread.h>

#include <csignal>

#include "storage/base/mutex.hpp"

namespace ooc::detail {

class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    // A synchronous one of these while it is blocked would end the process without a word.
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

/// The pager's lock as library calls take it.
class OOC_SCOPED_CAPABILITY guarded_lock : private signals_blocked, public unique_lock {
 public:
  explicit guarded_lock(mutex& m) OOC_ACQUIRE(m) : unique_lock(m) {}
  ~guarded_lock() OOC_RELEASE() {}
};

}  // namespace ooc::detail
