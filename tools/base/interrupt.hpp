// Ctrl-C (SIGINT), SIGTERM and SIGHUP for commands that make something: they end it at the next step, and
// what was half made is removed on the way out.  A second signal ends the process at once.
#pragma once

#include <exception>

namespace ooc::tool {

/// Thrown by check_interrupted(); the process ends by the same signal when it has cleaned up.
struct interrupted : std::exception {
  explicit interrupted(int s) : signal(s) {}
  const char* what() const noexcept override { return "interrupted"; }
  int signal;
  const char* left = "no half made file or array stays";  ///< what its sender is told
};

/// From now on the signals are kept for check_interrupted(), but for those that are ignored.
void catch_interrupts();

/// Throws interrupted where a signal has come.  Any thread may call it.
void check_interrupted();

/// Ends the process by this signal, as if it had never been caught.
[[noreturn]] void end_by_signal(int signal);

}  // namespace ooc::tool
