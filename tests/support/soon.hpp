// Waiting for what another process does.
#pragma once

#include <chrono>
#include <thread>

namespace ooc::testing {

/// True once the condition holds, looked at every 20 ms; false where it does not within `patience`.
template <class Condition>
bool soon(Condition c, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!c()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace ooc::testing
