// Where the first so many elements of all sorted runs end in each of them, before they are merged.
//
// This is multisequence selection (Varman, Scheufler, Iyer, Ricard: Merging multiple lists on
// hierarchical-memory multiprocessors, JPDC 1991).  Of each run every s-th element is looked at, for s a power
// of two that is halved until it is 1.  Of all of these, the first q = count / s are *chosen*: the chosen of a
// run are its first ones.  With s halved each run has one more element between its last chosen one and the
// next; all that come before the last chosen of all runs are chosen too, and then at most as many as there are
// runs are added or taken back.  So about one element of each run is read for each halving, those of all runs
// at once.
//
// Equal elements come in the order of the runs: where runs are in the order of the elements from which they were made,
// the merged parts are those of a stable sort.
//
// Owner: the algorithm; file, runs and memory outlive it.  Threads: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "runtime/array/direct_transfer.hpp"

namespace ooc::detail {

class run_splitter {
 public:
  /// `memory` has room for two elements of each run.
  run_splitter(const sort_program& program, const element_file& file, std::span<const run_part> runs,
               std::byte* memory);
  ~run_splitter();

  /// How many elements of each run are among the first `count` of all, which are as many at least.  Throws io_error,
  /// and what the program throws.
  std::vector<std::uint64_t> split(std::uint64_t count);

 private:
  struct sample {
    std::size_t run;
    std::uint64_t number;  ///< in the run
  };
  struct held_run;

  void begin_read(sample s);
  const std::byte* element(sample s);
  bool comes_before(sample x, sample y);
  void choose_before_last(std::uint64_t step);
  void add(std::uint64_t step, std::uint64_t count);
  void take_back(std::uint64_t step, std::uint64_t count);

  const sort_program& program_;
  const element_file& file_;
  const std::span<const run_part> runs_;
  std::vector<std::unique_ptr<held_run>> held_;
  std::vector<std::uint64_t> chosen_;  ///< of each run, at the step that is looked at
};

}  // namespace ooc::detail
