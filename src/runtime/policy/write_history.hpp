// The conclusions from the writes to a segment: whether what is read will be written next, and whether a sweep of
// writes comes back to what it has left.
//
// A sweep of writes has the block that it left two steps ago written (one that is near the border may still be changed
// by a stencil).  One that is changed again while it is in memory has been written for nothing, as where a program
// fills a panel and then adds to it: where more than one in eight is, that is the end of it.
//
// Thread-safe, for first writes are no matter of the pager's lock.  For fault handlers: nothing allocates.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/policy/block_index.hpp"
#include "runtime/policy/block_past.hpp"
#include "runtime/policy/policy_numbers.hpp"
#include "runtime/policy/write_guess.hpp"

namespace ooc::detail {

class write_history {
 public:
  // --- what has happened

  void first_write(block_past& p) noexcept {
    if (std::exchange(p.watched, false)) guess_.written();
    if (std::exchange(p.swept, false)) swept_again_.fetch_add(1, std::memory_order_relaxed);
  }
  void cleaned_behind_sweep() noexcept { swept_.fetch_add(1, std::memory_order_relaxed); }
  /// Nothing is modified any more.
  void written_back() noexcept { guess_.forget(); }

  // --- what to do

  /// Whether a grain that is read should come in writable, and count as modified.
  bool writable_on_arrival(block_past& p) noexcept {
    const bool writable = guess_.comes_in();
    p.watched = !writable;
    return writable;
  }
  /// The block to clean where a sweep of writes over `blocks` has come to `at`.
  std::optional<block_index> to_clean_behind(block_index at, std::int64_t step, std::uint64_t blocks) const noexcept {
    const std::uint64_t one_in = policy_numbers::now.swept_again_one_in;
    if (swept_again_.load(std::memory_order_relaxed) > one_in + swept_.load(std::memory_order_relaxed) / one_in)
      return {};
    const std::int64_t left = static_cast<std::int64_t>(at) - 2 * step;
    if (left < 0 || static_cast<std::uint64_t>(left) >= blocks) return {};
    return static_cast<block_index>(left);
  }

 private:
  write_guess guess_;
  std::atomic<std::uint64_t> swept_{0};        ///< blocks written behind a sweep
  std::atomic<std::uint64_t> swept_again_{0};  ///< those changed once more while in memory
};

}  // namespace ooc::detail
