// Every timed run is a process of its own: it can be given a memory cap, it starts with an empty
// cache of blocks, its peak memory is its own, and a process may have one runtime only.
#pragma once

#include <cstdint>
#include <functional>

#include "measure/case.hpp"
#include "measure/stopwatch.hpp"

namespace bench {

/// Runs `work` in a forked child, limited to `cap` bytes of memory where possible (0: no limit), and
/// returns its result, with "peak_rss" (bytes) and "processor_seconds" added.  Throws std::runtime_error with the
/// child's message if it threw, and where it was killed.  The caller must have one thread.
json in_child(std::uint64_t cap, const std::function<json()>& work);

/// Puts what a part of a run takes into its result: "seconds", and "processor", the seconds of the processors that
/// all its threads took, which bear the load of other programs better.
template <class F>
void put_times(json& out, F f) {
  const double before = process_seconds();
  out["seconds"] = seconds_of(f);
  out["processor"] = process_seconds() - before;
}

/// From now on SIGINT, SIGTERM and SIGHUP end in_child() with an exception, so that destructors
/// clean up.
void interrupts_throw();

}  // namespace bench
