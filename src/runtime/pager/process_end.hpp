// Writes back what is modified when the process ends: exit(), std::terminate(), and, where the
// program asks for it, SIGTERM and SIGINT.
//
// The writing is done by a thread made for it, as who ends the process may hold any lock; that one
// waits until the deadline.  Nothing here is collective: a rank that ends waits for no other.  The
// threads of the store still run at that time: they end with the last array, not with the process.
//
// exit() calls functions and destructors of static objects in the reverse order of their
// registration.  What a store may need (of spdlog, Asio, and whatever these use) is registered at
// the latest when the store is opened; so write_back_at_exit(), called when a store is first used,
// runs before all of that goes.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <thread>

#include "oocarray/runtime.hpp"

namespace ooc::detail {

class pager;

/// One exists at a time, for the runtime of the process.  Made and destroyed by one thread.
class process_end {
 public:
  /// Installs the terminate handler, and those for signals if `o` says so.  Throws usage_error
  /// (errc::busy) where the program handles one of these itself, std::system_error where there is
  /// no thread.
  process_end(pager& p, const runtime_options& o);
  /// Waits for a thread that is writing.  Handlers that were ours are then those from before.
  ~process_end();
  process_end(const process_end&) = delete;
  process_end& operator=(const process_end&) = delete;

  /// From now on exit() writes back before it ends any static object that exists by now.
  static void write_back_at_exit();

 private:
  void watch_signals();
  void ignore_signals() noexcept;
  void await_signal();

  std::terminate_handler before_ = nullptr;
  bool watching_ = false;
  std::thread watcher_;
};

}  // namespace ooc::detail
