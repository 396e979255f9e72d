// Whether grains that are read will be written next.
//
// A grain that is read comes in write-protected, so that its first write is seen: a second fault for each grain of a
// loop that reads and then writes.  Where most of those that came in lately were written, grains come in
// writable, and count as modified at once.  One in a few still comes in protected, and shows whether that is
// still right.
//
// invalidate() refuses what is modified, so after a write-back all begins anew: a program that only reads from there on
// finds nothing modified.
//
// Thread-safe: faults of several threads count at a time; what they lose of each other's counts is little.
#pragma once

#include <atomic>

#include "runtime/policy/policy_numbers.hpp"

namespace ooc::detail {

class write_guess {
 public:
  /// A grain is read.  True where it should come in writable; else written() is called when it is written.
  bool comes_in() noexcept {
    if (is_likely() && comings_.fetch_add(1, std::memory_order_relaxed) % policy_numbers::now.protected_one_in != 0)
      return true;
    if (read_.fetch_add(1, std::memory_order_relaxed) >= policy_numbers::now.guessed_reads) {
      read_.store(read_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
      written_.store(written_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    }
    return false;
  }
  /// Nothing is modified now: what is only read from here on must not be.
  void forget() noexcept {
    read_.store(0, std::memory_order_relaxed);
    written_.store(0, std::memory_order_relaxed);
  }
  void written() noexcept { written_.fetch_add(1, std::memory_order_relaxed); }

 private:
  bool is_likely() const noexcept {
    const unsigned read = read_.load(std::memory_order_relaxed);
    return read >= policy_numbers::now.guessed_reads / 4 && written_.load(std::memory_order_relaxed) * 4 >= read * 3;
  }

  std::atomic<unsigned> read_{0};
  std::atomic<unsigned> written_{0};
  std::atomic<unsigned> comings_{0};
};

}  // namespace ooc::detail
