// The runtime of a process: one byte budget, the pool of frames, the fault handler, the threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "oocarray/error.hpp"
#include "oocarray/stats.hpp"
#include "oocarray/units.hpp"

namespace ooc {

namespace detail {
class pager;
class process_end;
}
class process_group;

struct runtime_options {
  /// Bytes for array data in memory, shared by every array of the process: blocks resident or in
  /// flight, and the transfer buffers of the stores in use.  One copy from an element that lies
  /// across two blocks to another can need 4 blocks at once, and in an array of several processes
  /// the two that are written count twice (6 blocks).  So much, with the largest blocks of the open
  /// arrays, must be left beside the buffers and what is pinned: an array or a pin that would leave
  /// less is refused with errc::budget_too_small and the number that would do.  With that much every
  /// access of every thread is served, however slowly; instructions that gather from or scatter to
  /// more places than two need memory for the blocks of all.
  std::uint64_t memory = 512_MiB;
  /// Default block of an array, bytes, multiple of 4 KiB; 0: 2 MiB, less where the
  /// budget, as it is when the array is opened, is small.
  std::uint64_t block = 0;
  /// Blocks that may be read ahead of the program, at most, counted over all arrays; 0: chosen
  /// from the budget.  1 turns read-ahead off.
  unsigned read_ahead = 0;
  /// Called on a thread of the runtime, before the process ends, where an element access could not
  /// be served.  It may save what it likes, but must not touch an array.
  std::function<void(const failure&)> on_fatal{};
  /// How long the end of the process waits for modified blocks; see runtime.
  std::chrono::milliseconds end_deadline = std::chrono::seconds(30);
  /// SIGTERM and SIGINT write back as exit() does, on a thread of the runtime, before their default
  /// action ends the process; a further signal meanwhile changes nothing.  One that is ignored when
  /// the runtime is made stays ignored.  Where the program has a handler for one of them, the
  /// constructor throws usage_error (errc::busy); a handler that it installs later takes the place
  /// of the runtime's.
  bool write_back_on_signals = false;
};

/// Exit status of a process in which an element access could not be served (EX_IOERR).
inline constexpr int fatal_exit_status = 74;

/// At most one runtime exists in a process at a time: a second throws usage_error (errc::busy).
/// Thread-safe, but for the destructor.
///
/// The destructor writes back and closes every array and block_file that is still open, each by
/// itself (never as a collective), and reports on stderr what could not be written.  These are then
/// closed objects: calls throw usage_error (errc::closed), a touch of their elements ends the process
/// with a message, their destructors do nothing.  No other thread may use them meanwhile.
///
/// The clean end of the process writes back too, acknowledged as by writeback(), for at most
/// runtime_options::end_deadline: exit() and the return from main, before any static object ends that
/// existed when the first array of a store was opened, and std::terminate(), as after an uncaught
/// exception, before the handler that was there when the runtime was made.  Other threads may go on
/// meanwhile.  It is never a collective, and closes nothing.  What could not be written is reported on
/// stderr; where the deadline passes in exit(), the process ends at once with fatal_exit_status, and
/// static objects are not destroyed.  A program that installs a terminate handler later should call
/// the one before it.
/// A block that was touched under an overwrite() promise is written as it is: elements of the promised
/// box that were not written yet are zeros then; blocks of the box that were not touched stay as they
/// were in the file.
/// Lost is what was not written back before abort(), _exit(), quick_exit(), SIGKILL, the default
/// action of any other signal (but see runtime_options::write_back_on_signals), or exec().  A forked
/// child writes nothing, however it ends.
///
/// A thread that touches arrays must not block SIGSEGV: the kernel would end the process.
///
/// The constructor installs a handler for SIGSEGV that serves touches of array memory
/// and passes every other fault to the handler that was there before.
class runtime {
 public:
  /// Throws usage_error (errc::budget_too_small) where `memory` cannot hold 8 blocks of 4 KiB, and
  /// (errc::invalid_request) for a block that is not a multiple of 4 KiB.
  explicit runtime(const runtime_options& options = {});
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  runtime_stats stats() const;
  /// The sum over the runtimes of a group's ranks, on every rank.  Collective.
  runtime_stats stats(process_group& group) const;
  std::uint64_t memory() const noexcept;

  detail::pager& pager() const noexcept { return *pager_; }

 private:
  std::unique_ptr<detail::pager> pager_;
  std::unique_ptr<detail::process_end> end_;
};

}  // namespace ooc
