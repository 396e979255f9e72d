// The process-wide part of the pager: the SIGSEGV handler and the table of address ranges it reads.
//
// The table is global, as a handler of signals needs it to be.  (The library has two more globals:
// who holds which file, file_claims.cpp, and what is written back when the process ends,
// process_end.cpp.) The handler finds the segment of an address without a lock; a fault outside
// every range goes to the handler that was installed before ours.
//
// Handlers may be installed after ours; reclaim() puts ours in front of them.  Such a handler and
// ours then each take the other for its predecessor, and a fault that is nobody's could go to and
// fro for ever: so ours knows all that it was put in front of, and passes a fault that comes back
// on to the one before.
//
// A touch that is a fault of the program (the array is closed, or read-only, or ends before that
// address, or this is a forked child) writes a message (fault_report.hpp) and goes that way too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/pager/event_queue.hpp"
#include "runtime/pager/fault_turn.hpp"

namespace ooc::detail {

class pager;
namespace fault_handler {

/// Makes `p` the pager of the process.  `by_signals`: touches are served in the threads that make them, none of which
/// may then block the signals.  Throws usage_error (errc::busy) where there is one, or was one in the parent when it
/// forked this process.
void attach(pager& p, bool by_signals);
/// Does nothing where it is not that pager.
void detach(pager& p) noexcept;

/// Adds the addresses of a segment, guards included, and does what reclaim() does; looks at all threads.  Throws
/// usage_error where 1024 segments are open.
void add_range(segment_state& s);
/// Puts our handler in front of whichever has been installed since, as MPI_Init and others install theirs, and has this
/// thread, and where threads have come all of them, unblock the signals (storage/base/fault_signals.hpp).
void reclaim();
/// After its end; until then a touch of a closed segment is named.
void remove_range(segment_state& s) noexcept;

/// The answer to another thread's touch.
enum class answer : std::uint8_t {
  served,         ///< it may be tried again
  refused_write,  ///< the program may not write there
  refused,        ///< the array is closed, or ends before
  gone,           ///< nobody knows the address any more
};
/// Serves a touch by a thread that the kernel holds meanwhile; `h` is its history.
answer serve_for(std::uintptr_t address, touch t, fault_history& h) noexcept;
/// Returns when nobody is within serve_for() for a segment that is closed: it goes on for a moment after
/// the thread that touched has gone on.
void await_services(const segment_state& s) noexcept;

/// True in a child of fork() whose parent had a pager: nothing of the pager works here.
bool in_forked_child() noexcept;

}  // namespace fault_handler
}  // namespace ooc::detail
