// The addresses that the process may still map where it has a limit of them (ulimit -v).
//
// An array takes addresses for its elements, for tables, and with the first array of a block size for the frames of the
// budget; the guards around its elements take more.  Without a limit they cost nothing.  Under one they are missing for
// everything else: stacks of threads, the heap.  So the guards shrink first, then an array does without grains and the
// allocator without an arena for each thread, and an array that still leaves too little is refused.
//
// Threads: any; what is read may have changed when it is used, and a mapping may fail all the same
// (refuse_addresses()).
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace ooc::detail {

struct address_room {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t limit = no_limit;
  std::uint64_t left = no_limit;

  static address_room now();

  /// Whether so many leave enough to run with: for a few stacks, and what is read and written.
  bool has(std::uint64_t bytes) const noexcept;
  /// Whether they leave the program a quarter of its limit.
  bool has_plenty(std::uint64_t bytes) const noexcept;
  /// How many of `most` there may be on each side of what takes `bytes`, so that it does.
  std::uint64_t guard_beside(std::uint64_t bytes, std::uint64_t most) const noexcept;
};

/// Has the threads that begin from now on share an arena of malloc where they would take one each (64 MiB of addresses
/// in glibc), so that two of them do not take what is left of a low limit.
void spare_addresses() noexcept;

/// Throws usage_error (ENOMEM): "<what> takes <bytes> bytes of addresses", the limit, and the remedy.  Where there
/// is no limit, it is errno that says why they could not be had.
[[noreturn]] void refuse_addresses(const std::string& what, std::uint64_t bytes);

}  // namespace ooc::detail
