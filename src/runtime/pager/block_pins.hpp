// Pins: blocks that stay mapped, readable or writable, until they are given back; and blocks that are brought in for a
// touch that will follow, so that a failed load is the result of a call.
//
// A pinned block is in no queue of the replacement (frame::pins), is never evicted, and counts in the
// memory_budget from before it is brought in until after it was let go.
//
// Lock: the pager's.  Threads: calls of the program; they wait for blocks and frames as faults do, but
// a failed load is their result and not the end of the process.
#pragma once

#include <span>

#include "oocarray/access.hpp"
#include "runtime/pager/fault_server.hpp"
#include "runtime/pager/memory_budget.hpp"
#include "runtime/pager/pager_state.hpp"
#include "runtime/pager/prefetcher.hpp"

namespace ooc::detail {

class block_pins {
 public:
  block_pins(pager_state& state, memory_budget& budget, prefetcher& ahead, fault_server& faults, grains& parts) noexcept
      : state_(state), budget_(budget), ahead_(ahead), faults_(faults), grains_(parts) {}

  /// All or nothing; see segment::pin().
  failure pin(segment_state& s, std::span<const block_range> which, access_mode mode);
  void unpin(segment_state& s, std::span<const block_range> which, access_mode mode) noexcept;
  /// See bring_in() in segment.hpp.
  failure bring_in(segment_state& s, std::span<const block_range> which, access_mode mode);

 private:
  failure bring_in(segment_state& s, block_index b, touch kind);
  failure wait_for(segment_state& s, block_index b, touch kind, bool& waited);
  failure pin_block(segment_state& s, block_index b, bool write);

  pager_state& state_;
  memory_budget& budget_;
  prefetcher& ahead_;
  fault_server& faults_;
  grains& grains_;
};

}  // namespace ooc::detail
