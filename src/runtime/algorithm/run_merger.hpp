// Merges sorted runs, from a file through two buffers each or from memory, into a file.
//
// Each run shows a *window*: what of it is in the buffer that is being merged, while the other buffer is
// read.  A *batch* is what can be merged without asking for more: all elements that come before the last
// element of that window whose last element is least.  A batch fits into the output buffer, because it
// takes of each window at most its share of the room there; threads merge parts of it, cut so that each part
// goes to a place of its own.  Full output buffers are written while the next is filled.
//
// Threads: the calling one, and those of the team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "runtime/algorithm/thread_team.hpp"

namespace ooc::detail {

class run_merger {
 public:
  /// `memory` has room for the outputs, and for the buffers of the runs if they come from files.
  run_merger(const sort_program& program, const sort_plan& plan, std::byte* memory, thread_team& team,
             algorithm_call& call);
  ~run_merger();

  /// Parts of runs in `from`; the result goes to another file, from element `place` on.
  void merge(const element_file& from, std::span<const run_part> runs, const element_file& to, std::uint64_t place);
  /// From memory to the beginning of `to`.
  void merge(std::span<const sorted_window> runs, const element_file& to);

 private:
  struct source;

  void merge_all(std::uint64_t first);
  void refill();
  std::size_t cut(std::size_t room);
  void merge_batch(std::size_t total);
  void flush(bool last);

  const sort_program& program_;
  const sort_plan& plan_;
  const std::size_t size_;  ///< of an element
  thread_team& team_;
  algorithm_call& call_;
  std::byte* const buffers_;  ///< of the runs
  const element_file* from_ = nullptr;
  const element_file* to_ = nullptr;
  std::vector<std::unique_ptr<source>> sources_;  ///< that are not at their end, in order
  std::vector<sorted_window> windows_;            ///< of the batch
  std::vector<std::size_t> counts_;               ///< of each window
  std::uint64_t output_ = 0;                      ///< being filled
  std::size_t filled_ = 0;                        ///< elements
  std::uint64_t place_ = 0;                       ///< in the file, of the output's first element
  buffered_stream outputs_{sort_plan::outputs, 0};
};

}  // namespace ooc::detail
