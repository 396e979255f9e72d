// The report of a touch of array memory that is a fault of the program, before the process goes the way
// of any such fault.
//
// Runs in the fault handler: it allocates nothing, waits for nothing, and writes by write(2).
#pragma once

#include <cstdint>

#include "runtime/pager/pager.hpp"

namespace ooc::detail {

enum class bad_touch : std::uint8_t {
  in_forked_child,
  closed,
  out_of_range,
  read_only,
  outside_part,  ///< of a rank, with owner_computes
};

/// `offset`: bytes from the segment's first block; negative before it.
void report_bad_touch(const segment_state& s, std::int64_t offset, touch t, bad_touch why) noexcept;

/// Says, once in a process, that another handler has reported a touch as a crash before ours got to
/// see it.
void report_displaced_handler(const segment_state& s) noexcept;

}  // namespace ooc::detail
