// What a program has done with its arrays, on one page: for runtime::report(), and the line that OOC_PROGRESS shows.
//
// Functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oocarray/stats.hpp"
#include "runtime/policy/touch_order.hpp"

namespace ooc::detail {

struct array_usage {
  std::string name;
  std::uint64_t bytes = 0;  ///< of the array when it was last open
  std::uint64_t block_bytes = 0;
  runtime_stats counts;  ///< of its blocks and grains
  touch_order order;
  bool wasteful = false;    ///< waste_watch has found that it is read far more than it is touched
  std::uint64_t place = 0;  ///< the byte of the last touch that the pager saw

  /// The same array, opened once more.
  void add(const array_usage& again);
};

/// Adds it to the one of its name, or as another.  Of very many names those that come late are one, "(others)".
void join_usage(std::vector<array_usage>& all, array_usage u);

struct run_usage {
  double seconds = 0;  ///< since the runtime was made
  runtime_stats all;   ///< what goes past the blocks of arrays included
};

/// Text of some lines, each ended; of the arrays those for which most was read and written, or waited.
std::string usage_report(const run_usage& run, std::vector<array_usage> arrays);

/// What has happened between two moments, in a line without its end.  `arrays` as they are now, and at the moment
/// before.
std::string progress_line(const run_usage& before, const run_usage& now, const std::vector<array_usage>& arrays_before,
                          const std::vector<array_usage>& arrays);

}  // namespace ooc::detail
