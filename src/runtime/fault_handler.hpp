// The process-wide part of the pager: the SIGSEGV handler and the table of address ranges it reads.
//
// The table is the one global of the library.  The handler finds the segment of an address without
// a lock; a fault outside every range goes to the handler that was installed before ours.
//
// In a forked child the ranges are without access and without a pager: a touch there writes a
// message and goes the way of an ordinary fault.
#pragma once

#include <cstddef>

namespace ooc::detail {

class pager;
struct segment_state;

namespace fault_handler {

/// Makes `p` the pager of the process.  Throws usage_error (errc::busy) where there is one.
void attach(pager& p);
void detach(pager& p) noexcept;

/// Adds the addresses of a segment; looks whether our handler is still the installed one, as
/// MPI_Init and others install theirs.  Throws usage_error where 1024 segments exist.
void add_range(std::byte* base, std::size_t bytes, segment_state& s);
void remove_range(segment_state& s) noexcept;

/// True in a child of fork(): nothing of the pager works here.
bool in_forked_child() noexcept;

}  // namespace fault_handler
}  // namespace ooc::detail
