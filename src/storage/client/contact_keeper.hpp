// Asks a server again and again, so that it does not take a client for lost that has nothing to ask.
//
// A metadata server that has been started again, or has lost a connection, keeps what a client holds for a grace period
// only.  A program that computes, and reads and writes on I/O servers alone, would not be back within it.  The thread
// comes with the first call of every().  Thread-safe, but for stop().
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"

namespace ooc::storage {

class contact_keeper {
 public:
  /// `ask` must not throw; false where something is still to be said to the server: then it is called again within
  /// a second.
  explicit contact_keeper(std::function<bool()> ask) : ask_(std::move(ask)) {}

  /// From now on that often, at least.
  void every(std::chrono::milliseconds period);
  /// There is something to be said to the server: as where `ask` returned false.
  void soon();
  /// No more, and none under way.
  void stop() { ticker_.stop(); }

 private:
  ticker::clock::time_point next() const OOC_REQUIRES(mutex_);
  ticker::clock::time_point ask_if_due();

  const std::function<bool()> ask_;
  mutex mutex_;
  std::chrono::milliseconds period_ OOC_GUARDED_BY(mutex_){0};  // 0: never
  ticker::clock::time_point asked_ OOC_GUARDED_BY(mutex_);
  bool soon_ OOC_GUARDED_BY(mutex_) = false;
  ticker ticker_{[this] { return ask_if_due(); }};  // last: ends first
};

}  // namespace ooc::storage
