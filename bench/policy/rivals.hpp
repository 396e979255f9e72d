// What textbook replacement makes of a trace: units of one size that come in when they are touched, no read-ahead.
#pragma once

#include <cstdint>

#include "policy/access_trace.hpp"

namespace bench::policy {

struct rival_outcome {
  std::uint64_t misses = 0;
  std::uint64_t written = 0;  ///< units, those that are modified at the end too
  std::uint64_t waited_ns = 0;
};

/// The unit that was touched longest ago leaves.
rival_outcome replay_lru(const access_trace& t);
/// Yang and others, SOSP 2023: a small queue for a tenth of the memory, a main one, and names of what left the small
/// one.
rival_outcome replay_s3_fifo(const access_trace& t);
/// Belady's: the unit that will be touched last leaves; nobody can have fewer misses.
rival_outcome replay_optimum(const access_trace& t);

}  // namespace bench::policy
