// Options and reports of the algorithms that pass over arrays: those of copy.hpp, elementwise.hpp, and the
// others of this folder.  (ooc::sweep has options of its own.)
//
//     ooc::transpose(a, b, {1, 0}, {.threads = 4, .progress = [](const ooc::pass_progress& p) {
//       std::printf("%3.0f %%\n", 100 * p.part());
//       return !interrupted;
//     }});
//
// *Cancelling.*  Where the callback returns false, the algorithm ends as soon as what is on its way
// has arrived, and throws ooc::error (std::errc::operation_canceled).  On ranks it throws on all of
// them as soon as they come to the end of their parts or one another's.
//
// *State of what is written.*  Until an algorithm has returned, arrays that it writes hold neither
// their old nor their new elements.  With `mark` their files say so (EBUSY on opening, see
// open_unfinished), from before the first write until everything is durable.  An exception, of the
// store or of the program's functions, and the death of the process leave the mark; so does
// cancelling.  Arrays with commits (commit.hpp) need no mark: roll_back(), or the next opening, gives what they held
// before.
//
// *Planning.*  With `plan` nothing is read, written or marked, and no function of the program is called: the algorithm
// checks its arguments, divides the memory that it would get now, and reports what it is going to do:
//
//     const auto planned = ooc::sort(a, {.plan = true});   // planned.passes, .memory, .bytes_read, .bytes_written
//     std::printf("%.2f of the least traffic\n", planned.over_bound());
//
// It does the same later, with as much memory; what a rank's program says itself on its way (stencil_of::after()) is
// not foreseen.  A result that has a value has the one that the algorithm begins with.
//
// *Ranks.*  `mark` and `reproducible`, boxes and permutations must be the same on all ranks; where they are not, all
// throw usage_error (errc::not_together) before anything is written.  `threads`, `memory` and `progress` may differ.
//
// Threads: the callback is called by one thread at a time, which may be any thread of the
// algorithm.
#pragma once

#include <cstdint>
#include <functional>

namespace ooc {

/// How far an algorithm has come, on this rank.
struct pass_progress {
  std::uint64_t done = 0;  ///< bytes read and written
  std::uint64_t all = 0;   ///< of these when it is finished

  double part() const noexcept { return all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all); }
};

struct pass_options {
  /// Threads that compute.  0: one for each processor.
  unsigned threads = 0;
  /// The files of arrays that are written say "in the middle" meanwhile, and the algorithm ends
  /// with a durable sync() of what it wrote.  Without it data are as after any loop
  /// (elementwise.hpp), or acknowledged (copy.hpp).
  bool mark = true;
  /// Bytes of the budget that it may take for buffers of its own, if it needs any.  0: it chooses.
  std::uint64_t memory = 0;
  /// Reductions and scans over arrays of a group: the result does not depend on how many ranks there
  /// are.  Begins with a sync() of the arrays.  On the number of threads it does not depend anyway.
  bool reproducible = false;
  /// Called now and then, at most about a thousand times; false: stop.  It must not touch the
  /// arrays.
  std::function<bool(const pass_progress&)> progress = {};
  /// Nothing is done but planned, see above.  The same on all ranks.
  bool plan = false;
};

struct pass_statistics {
  std::uint64_t passes = 0;         ///< over the array that is read
  std::uint64_t memory = 0;         ///< bytes taken off the budget meanwhile
  std::uint64_t bytes_read = 0;     ///< of arrays by this process; see docs/algorithms.md
  std::uint64_t bytes_written = 0;  ///< the same
  /// Bytes that no algorithm for this can do without, read and written, with that memory: what is known of it for the
  /// kind of algorithm, see docs/algorithms.md.  At least all that is given once and the result once.
  std::uint64_t bound = 0;

  /// Bytes read and written, in units of the bound; 1: no algorithm moves less.
  double over_bound() const noexcept {
    return bound == 0 ? 1 : static_cast<double>(bytes_read + bytes_written) / static_cast<double>(bound);
  }
};

/// The same, of an algorithm that has a value as its result: `double sum = ooc::reduce(a, 0.0);`  Where no type says
/// that the value is meant, as in printf() or `auto`, it is `.value`.
template <class Value>
struct pass_result : pass_statistics {
  Value value{};

  operator Value() const { return value; }
};

}  // namespace ooc
