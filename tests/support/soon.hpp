// Waiting for what another thread or process does, where it gives no event that can be waited for.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace ooc::testing {

/// True once the condition holds; it is looked at after 1 ms, 2 ms, ... and then every 20 ms.  False where
/// it does not hold within `patience`, which only keeps a test from hanging: no test is about its length.  Time in
/// which the test itself was stopped, as by who measures something on the same machine, is not counted.
template <class Condition>
bool soon(Condition c, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds was_stopped(1);
  clock::duration left = patience;
  auto looked = clock::now();
  for (std::chrono::milliseconds pause(1); !c(); pause = std::min(2 * pause, std::chrono::milliseconds(20))) {
    if (left <= clock::duration::zero()) return false;
    std::this_thread::sleep_for(pause);
    const auto before = std::exchange(looked, clock::now());
    left -= std::min<clock::duration>(looked - before, pause + was_stopped);
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
