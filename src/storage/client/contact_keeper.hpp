// Asks a server again and again, so that it does not take a client for lost that has nothing to ask.
//
// A metadata server that has been started again, or has lost a connection, keeps what a client holds for a grace period
// only.  A program that computes, and reads and writes on I/O servers alone, would not be back within it.  The thread
// comes with the first call of every().  Thread-safe, but for stop().
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "storage/base/mutex.hpp"

namespace ooc::storage {

class contact_keeper {
 public:
  /// `ask` must not throw; false where something is still to be said to the server: then it is called again within
  /// a second.
  explicit contact_keeper(std::function<bool()> ask) : ask_(std::move(ask)) {}
  ~contact_keeper() { stop(); }
  contact_keeper(const contact_keeper&) = delete;
  contact_keeper& operator=(const contact_keeper&) = delete;

  /// From now on that often, at least.
  void every(std::chrono::milliseconds period);
  /// There is something to be said to the server: as where `ask` returned false.
  void soon();
  /// No more, and none under way.
  void stop();

 private:
  void run();

  const std::function<bool()> ask_;
  mutex mutex_;
  condition_variable wake_;
  std::chrono::milliseconds period_ OOC_GUARDED_BY(mutex_){0};  // 0: never
  bool soon_ OOC_GUARDED_BY(mutex_) = false;
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ooc::storage
