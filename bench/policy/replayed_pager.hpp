// What the pager makes of a trace, without threads, signals, addresses and a disk.
//
// The parts of the pager are those of the library, put together in the calling thread: a touch that the processor
// would refuse goes to fault_server::on_fault(); the rounds of the service thread are run where its bell has rung, or
// somebody would wait.  Behind them are a mapping that maps nothing, and sources whose transfers end at once and take
// their time in a disk_model.  So a replay is the same each time, and whatever the library decides is decided here.
#pragma once

#include <cstdint>

#include "policy/access_trace.hpp"

namespace bench::policy {

struct outcome {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;  ///< those at the end too
  std::uint64_t faults = 0;         ///< touches that found nothing in memory
  std::uint64_t soft_faults = 0;
  std::uint64_t refused = 0;  ///< touches that the processor refuses: these, and first writes to what came in protected
  std::uint64_t ahead = 0, ahead_used = 0, ahead_wasted = 0;  ///< blocks and grains read ahead
  std::uint64_t evictions = 0;
  std::uint64_t waited_ns = 0;
  bool hinted = false;  ///< that far more is read than is touched

  bool operator==(const outcome&) const = default;
};

outcome replay_with_pager(const access_trace& t);

}  // namespace bench::policy
