// Which claims to write a file have ended, as whoever carries out writes knows it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

/// Claims that began at an earlier generation of the file than these have ended.
struct claim_fence {
  std::uint64_t alone_since = 0;     ///< of who writes alone
  std::uint64_t together_since = 0;  ///< of who writes together with others

  /// Ends the claims that one that begins now does not go together with.  True where that changes something.
  bool end_before(const write_claim& c) noexcept {
    const claim_fence before = *this;
    alone_since = std::max(alone_since, c.since);
    if (c.alone) together_since = std::max(together_since, c.since);
    return *this != before;
  }
  bool holds(const write_claim& c) const noexcept {
    return c.since == 0 || c.since >= (c.alone ? alone_since : together_since);
  }
  bool operator==(const claim_fence&) const = default;
};

/// What its holder is told, whose claim has ended: somebody else's began later, and what the former one has in memory
/// may be older than what is stored.
inline constexpr const char* claim_has_ended =
    "another process has opened the file for writing since this one did: this one was out of touch with the metadata "
    "server for longer than the grace period (`ooc-metad --grace`), or rank 0 of its group, which held the claim for "
    "all ranks, has ended; that ended its claim to write the file; what it has not stored yet is lost; open the file "
    "again";

}  // namespace ooc::storage
