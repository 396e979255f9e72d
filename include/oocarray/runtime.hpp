// The runtime of a process: one byte budget, the pool of frames, the fault handler, the threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "oocarray/error.hpp"
#include "oocarray/stats.hpp"
#include "oocarray/units.hpp"

namespace ooc {

namespace detail {
class pager;
class process_end;
}  // namespace detail
class process_group;

/// How blocks come to their addresses; see runtime_options::mapping.
enum class mapping_way : std::uint8_t {
  /// The way that OOC_MAPPING in the environment names (signal, userfaultfd); where it names none, signal.
  automatic,
  /// A touch of what is not in memory is a signal (SIGSEGV) that the library handles.  Works on every
  /// kernel, without privileges.  A system call on elements that are not in memory fails (EFAULT):
  /// give it elements that are pinned.
  signal,
  /// A touch of what is not in memory waits in the kernel (userfaultfd) until a thread of the library
  /// has served it.  Needs Linux 6.8.  Where the process may have the faults of the kernel (as the
  /// superuser, with vm.unprivileged_userfaultfd=1, or where it may open /dev/userfaultfd), system calls
  /// and MPI may read and write elements that are not pinned, of arrays of any size; elsewhere they
  /// fail as with `signal`.  runtime_stats::kernel_access tells.
  userfaultfd,
};

struct runtime_options {
  /// The memory budget, in bytes.  All arrays of the process share it.  It counts the blocks in
  /// memory or on their way, and the transfer buffers of the stores in use.
  ///
  /// A copy of one element to another needs up to 4 blocks at once, because each of the two may lie
  /// across two blocks.  In an array of several processes the two blocks that are written count
  /// twice (6 blocks).  The budget must have room for so many of the largest blocks of the open
  /// arrays, beside the buffers and what is pinned.  An array or a pin that would leave less is
  /// refused with errc::budget_too_small, and what() says how much would do.  With that much, every
  /// access of every thread is served, however slowly.  Instructions that gather from or scatter to
  /// more than two places need room for the blocks of all these places.
  std::uint64_t memory = 512_MiB;
  /// Bytes in a block of an array that names no size itself; a multiple of 4 KiB.  0: 2 MiB, or a
  /// 32nd of the budget at the time when the array is opened, if that is less.
  std::uint64_t block = 0;
  /// How many blocks of all arrays together may be read ahead of the program.  0: chosen from the
  /// budget.  1: the library does not read ahead.
  unsigned read_ahead = 0;
  /// Called on a thread of the runtime, before the process ends, where an element access could not
  /// be served.  It may save what it likes, but must not touch an array.
  std::function<void(const failure&)> on_fatal{};
  /// How long the end of the process waits for modified blocks; see runtime.
  std::chrono::milliseconds end_deadline = std::chrono::seconds(30);
  /// If true: when SIGTERM or SIGINT arrives, a thread of the runtime writes back as exit() does,
  /// and then the signal's default action ends the process.  A further signal meanwhile changes
  /// nothing.  A signal that is ignored when the runtime is made stays ignored.  If the program
  /// already has a handler for one of the two, the constructor throws usage_error (errc::busy).  A
  /// handler that the program installs later replaces that of the runtime.
  bool write_back_on_signals = false;
  /// How blocks come to their addresses.  The runtime's constructor throws usage_error
  /// (errc::invalid_request) where userfaultfd is asked for and not to be had.
  mapping_way mapping = mapping_way::automatic;
  /// Touches that belong to no sweep bring in 4 KiB, a grain, and not their block, of arrays that do not
  /// fit in memory.  Where the kernel gives the process no userfaultfd (Linux 5.11), or OOC_GRAINS=off is in
  /// the environment, blocks come whole all the same.
  bool grains = true;
  /// Says on standard error, once for each array, where the program reads far more of it than it can have
  /// touched, and what would read less.
  bool hints = true;
};

/// Exit status of a process in which an element access could not be served, or modified data were lost (EX_IOERR).
inline constexpr int fatal_exit_status = 74;

/// At most one runtime exists in a process at a time: a second throws usage_error (errc::busy).
/// Thread-safe, but for the destructor.
///
/// *The end of the runtime.*  The destructor writes back and closes every array and block_file that
/// is still open, each by itself and never as a collective call.  It reports on stderr what could
/// not be written, as the destructors of arrays and block_files do, and the process will end with
/// fatal_exit_status, whatever main returns.  (What is not to be written, invalidate(ooc::discard)
/// drops before.)  These objects are then closed: calls throw usage_error (errc::closed), a touch
/// of their elements ends the process with a message, and their destructors do nothing.  No other
/// thread may use them meanwhile.
///
/// *The end of the process.*  The library writes modified blocks back when the process ends by
/// exit(), by the return from main, or by std::terminate(), as after an uncaught exception.  The
/// data are then acknowledged, as after writeback(), and not durable.
///   - In exit() this happens before the end of any static object that existed when the first array
///     of a store was opened.  In std::terminate() it happens before the terminate handler that was
///     installed when the runtime was made; a program that installs one later should call the one
///     before it.
///   - It takes at most runtime_options::end_deadline, not counting time in which the process is
///     stopped.  What could not be written is reported on stderr, and exit() ends with fatal_exit_status; if the
///     deadline passes, at once, without destroying static objects.
///   - It is never a collective call and closes nothing.  Other threads may go on meanwhile.
///   - A block that was touched under an overwrite() promise is written as it is: those elements of
///     the promised box that were not written yet are then zeros.  Blocks of the box that were not
///     touched stay as they were in the file.
///   - abort(), _exit(), quick_exit(), exec(), SIGKILL, and the default action of any other signal
///     lose what was not written back before (for SIGTERM and SIGINT see
///     runtime_options::write_back_on_signals).  A forked child writes nothing, however it ends.
///
/// Touches are SIGSEGV or SIGBUS in the thread that makes them, and the kernel ends a process in which a thread that
/// blocks these touches an array.  So they are unblocked: in a thread that makes a runtime, opens an array or calls
/// reclaim_faults(), and by these calls in all other threads that block them (pools such as numexpr's block every
/// signal), where a system call may be interrupted once (EINTR).  Not so with mapping_way::userfaultfd, which needs no
/// signals.
///
/// The constructor installs a handler for SIGSEGV and SIGBUS that serves touches of array memory
/// and passes every other fault to the handler that was there before.  A handler that is installed
/// later gets touches of arrays first, which ends most programs, until reclaim_faults() is called.
/// One that gives the signal back and raises it again, as crash reporters do, costs no more than
/// its report (on x86-64).
class runtime {
 public:
  /// Throws usage_error (errc::budget_too_small) where `memory` cannot hold 8 blocks of 4 KiB, and
  /// (errc::invalid_request) for a block that is not a multiple of 4 KiB, and for a way of mapping that
  /// is not known or not to be had.
  explicit runtime(const runtime_options& options = {});
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  runtime_stats stats() const;
  /// The sum over the runtimes of a group's ranks, on every rank.  Collective.
  runtime_stats stats(process_group& group) const;
  std::uint64_t memory() const noexcept;
  /// A page of text: how much the program has read, written and waited since the runtime was made, and for each array,
  /// open or closed, the same, in which order its blocks were touched, and what would make that faster, where something
  /// is known.  With OOC_REPORT=1 in the environment it is written to stderr when the runtime ends, with
  /// OOC_REPORT=FILE to the end of that file.  (OOC_PROGRESS=SECONDS shows a line on stderr so often while the program
  /// runs.)
  std::string report() const;

  /// Puts the library's handlers in front of those that were installed since (by MPI_Init, PETSc, a crash reporter, an
  /// interpreter), and unblocks their signals in this thread; in all threads where some have come or gone since.
  /// Opening arrays does the same, and so do calls between passes: prefetch(), overwrite(), pin(), writeback(),
  /// invalidate(), advise().  To be called after threads or handlers have come, before they touch an array.
  void reclaim_faults() const;

  detail::pager& pager() const noexcept { return *pager_; }

 private:
  std::unique_ptr<detail::pager> pager_;
  std::unique_ptr<detail::process_end> end_;
};

}  // namespace ooc
