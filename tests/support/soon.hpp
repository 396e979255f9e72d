// Waiting for what another thread or process does, where it gives no event that can be waited for.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace ooc::testing {

/// True once the condition holds; it is looked at after 1 ms, 2 ms, ... and then every 20 ms.  False where
/// it does not hold within `patience`, which only keeps a test from hanging: no test is about its length.
template <class Condition>
bool soon(Condition c, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (std::chrono::milliseconds pause(1); !c(); pause = std::min(2 * pause, std::chrono::milliseconds(20))) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

/// True where the condition holds at no look within `time`.  That something does not happen can be seen for
/// a while only: on a slow machine a wrong program may get away with it, a right one never fails.
template <class Condition>
bool never_within(std::chrono::milliseconds time, Condition c) {
  return !soon(c, time);
}

}  // namespace ooc::testing
