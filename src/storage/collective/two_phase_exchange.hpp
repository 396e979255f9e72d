// The two-phase transfer: ranks transfer contiguous windows of the file and pass on what belongs to
// others.
//
// Every rank knows every rank's request, so each computes alone which bytes go where, in which
// order; messages carry nothing else.  While one round is exchanged, the windows of the next are
// read, or those of the last written.
//
// A read takes along the short gaps that a node would read anyway.  Where that fails because of damage on the disk,
// it is repeated without them, since nobody has asked for those bytes.  A round takes at most 16 MiB of all ranks,
// or a sixteenth of the smallest budget, which lends the memory for the call.
//
// Memory of a rank: two windows and what it sends and receives in one round, at most twice the
// bytes of a round, beside a list of the regions in it.
#pragma once

#include <span>
#include <string>

#include "oocarray/process_group.hpp"
#include "storage/collective/exchange_plan.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::storage {

/// A transfer of one file that all ranks of a group make at once.
struct collective_transfer {
  process_group& group;
  std::string call;  ///< for messages, the same on all ranks
  access_kind kind = access_kind::read;
  std::span<const request> wanted;  ///< of each rank, by rank; the same on all.  Writes: no byte twice
  std::byte* memory = nullptr;      ///< of this rank's request; of a write: only read
  std::uint64_t round_bytes = 0;    ///< that all ranks together transfer at a time
};

/// Collective.  Returns the first failure of this rank's windows; a rank that has failed goes on
/// taking part, so that no other one waits, and transfers no further window.  Throws what the group
/// throws.
failure two_phase_transfer(const striped_file& file, const collective_transfer& t, const exchange_plan& plan);

}  // namespace ooc::storage
