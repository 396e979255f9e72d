// Keeps signal handlers of the program out while a thread holds a lock or a block of the pager.
//
// A handler that touches an array would otherwise wait for the very thread that it interrupted.
#pragma once

#include <pthread.h>

#include <csignal>
#include <mutex>

namespace ooc::detail {

class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    // A synchronous SIGSEGV while it is blocked would end the process without a word.
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_;
};

/// The pager's lock as library calls take it.
class guarded_lock {
 public:
  explicit guarded_lock(std::mutex& m) : lock(m) {}

 private:
  signals_blocked signals_;

 public:
  std::unique_lock<std::mutex> lock;
};

}  // namespace ooc::detail
