// The processes that work on one array together, as the library sees them.
//
// The core knows no MPI: an array that several ranks share is given an object of this kind
// (array_options::group).  oocarray/mpi.hpp makes one from a communicator.
//
// Every operation is collective: all ranks of the group call the same ones in the same order.
// `call` says which one it is, with everything that must be the same on all ranks ("sync of
// 'plate/a'"). Where the calls differ, every rank throws usage_error (errc::not_together) that says
// which rank called what, nothing is exchanged, and the group is as it was.
//
// An operation ends within the group's deadline.  If a rank does not call it in time (it has died,
// has thrown an exception between two operations, or is busy elsewhere), the other ranks throw
// io_error that names it: ETIMEDOUT, or ECONNABORTED if it is known to have left.  The group cannot
// be used any more.
//
// Threads: one operation at a time.  The arrays of one group must not be used for collective calls
// from two threads at once: the ranks could meet in different orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ooc {

enum class reduction : std::uint8_t { sum, max, min };

class process_group {
 public:
  using bytes = std::vector<std::byte>;

  virtual ~process_group() = default;

  /// 0 to size() - 1.
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  /// Returns when every rank has called it.
  virtual void barrier(std::string_view call) = 0;
  /// The bytes of rank `root`, on every rank; what the others pass is not looked at.
  virtual bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) = 0;
  /// The bytes that each rank passed, by rank; lengths may differ.  At most 2^31 - 1 bytes in all.
  virtual std::vector<bytes> all_gather(std::string_view call, std::span<const std::byte> mine) = 0;
  /// Replaces each value by the sum (largest, smallest) over the ranks; all pass equally many.
  virtual void all_reduce(std::string_view call, std::span<std::uint64_t> values, reduction how) = 0;

  /// Sends out[r] to every other rank r and fills in[r] with what it sends to this one; both know
  /// the length, at most 2^31 - 1 bytes.  What stands at a rank's own place is not looked at.  The
  /// memory must be ordinary or pinned; `owner` is held as long as messages may be on their way to
  /// or from it, which is for good where the wait is given up.
  virtual void exchange(std::string_view call, std::span<const std::span<const std::byte>> out,
                        std::span<const std::span<std::byte>> in, std::shared_ptr<const void> owner) = 0;

  /// Runs `f` on this rank and returns what each rank's returned, by rank; returns when every rank
  /// has run its own.  Where it threw on any rank, throws the same on all: what the lowest rank
  /// threw, which what() names.  Instead of what is no std::exception, io_error.  A result that all_gather() does not
  /// carry is a usage_error on all.
  std::vector<bytes> together(std::string_view call, const std::function<bytes()>& f);
};

}  // namespace ooc
