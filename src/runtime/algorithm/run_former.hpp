// The first pass of a sort: runs are read, sorted and written, three different ones at a time.
//
// Runs are the items of a buffered_stream.  The calling thread begins the reads, each as soon as the buffer's last run
// has been written; threads of its own take the runs in order, wait for a run's read, sort it and begin its write.
//
// Threads: form() by one.  What any of them throws ends the pass and comes out of form(); the destructor waits for what
// is still on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "runtime/algorithm/worker_threads.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class run_former {
 public:
  /// `memory` has room for the slots and, where the program needs it, scratch for each thread.
  run_former(const sort_program& program, const sort_plan& plan, run_part elements, std::byte* memory,
             algorithm_call& call);

  /// Run r is read from and written to the same place of the two files, which may be one.
  void form(const element_file& from, const element_file& to);

 private:
  std::uint64_t first_of(std::uint64_t run) const noexcept { return elements_.first + run * plan_.run; }
  std::uint64_t count_of(std::uint64_t run) const noexcept;
  void read_in_order(const element_file& from);
  bool wait_until_sorted(std::uint64_t run);
  void sort_in_turn(const element_file& to, std::byte* scratch);

  const sort_program& program_;
  const sort_plan& plan_;
  const run_part elements_;
  const std::uint64_t runs_;
  algorithm_call& call_;
  std::vector<std::byte*> scratch_;  ///< of each thread
  mutex mutex_;
  condition_variable changed_;
  std::uint64_t begun_ OOC_GUARDED_BY(mutex_) = 0;  ///< runs whose read has begun
  std::uint64_t taken_ OOC_GUARDED_BY(mutex_) = 0;  ///< runs that a thread sorts or has sorted
  /// Runs whose write has begun, of each buffer.
  std::vector<std::uint64_t> sorted_ OOC_GUARDED_BY(mutex_);
  first_error error_;
  buffered_stream stream_;
};

}  // namespace ooc::detail
