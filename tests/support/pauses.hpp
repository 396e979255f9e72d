// The only sleeps of tests, by what they are for.  Whoever waits for something waits for that: with a
// condition variable, a pipe, a future, or `soon` (soon.hpp).  A test of this folder looks for others.
#pragma once

#include <chrono>
#include <thread>

namespace ooc::testing {

/// A time that chance has drawn, and in which others go on: the moment at which it ends is what is tried.
template <class Duration>
void random_pause(Duration drawn) {
  std::this_thread::sleep_for(drawn);
}

/// A time that is itself part of what is tried: a peer is slow, a call is made a little later than another,
/// a limit of the tested program runs out.  The caller says which; nothing fails where it takes longer.
template <class Duration>
void let_pass(Duration time) {
  std::this_thread::sleep_for(time);
}

}  // namespace ooc::testing
