// The states of a block, and the one atomic word that holds them.
//
//     out -> queued -> loading -> ready -> ro | rw        ro | rw <-> inactive
//     rw | ro -> flush -> ro                               ready | inactive -> writing -> ready
//     ready | ro | rw | inactive -> busy -> (any of these) | out
//     out <-> busy <-> in_grains -> loading
//
// Whoever swaps a stable state for `busy` owns the block: it makes the system calls, changes the
// frame's fields, and publishes the new state.  Everybody else sleeps on the word and looks again.
// docs/architecture.md has the table of transitions.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/pager_mutex.hpp"
#include "runtime/blocks/sys.hpp"

namespace ooc::detail {

enum class block_state : std::uint32_t {
  out,        ///< not in memory; no frame
  queued,     ///< a thread waits for it; no frame yet
  loading,    ///< being read into its frame
  ready,      ///< bytes in the frame, clean or dirty; nothing mapped at the block's address
  ro,         ///< mapped read-only, clean or dirty
  rw,         ///< mapped writable, dirty
  inactive,   ///< mapped without access, bytes kept, clean or dirty: a touch is a soft fault
  flush,      ///< mapped read-only while it is being written to the store; writers wait
  writing,    ///< unmapped while it is being written from its frame
  busy,       ///< owned by a thread that changes it
  in_grains,  ///< in memory in parts, each of which has a state of its own (segment_state::grains)
};

/// Transient states are left without anybody else's help; one may sleep in them.
constexpr bool is_transient(block_state s) noexcept {
  return s == block_state::queued || s == block_state::loading || s == block_state::flush ||
         s == block_state::writing || s == block_state::busy;
}

inline constexpr std::uint32_t state_mask = 0xf;
inline constexpr std::uint32_t waiters_bit = 0x10;  ///< somebody sleeps on the word
inline constexpr std::uint32_t fault_bit = 0x20;    ///< ... in a fault handler: failure is fatal
inline constexpr std::uint32_t one_hold = 0x100;    ///< of a block in grains, counted from here up

constexpr block_state state_of(std::uint32_t word) noexcept { return static_cast<block_state>(word & state_mask); }
/// The access to a block in a stable state.
constexpr block_access access_in(block_state s) noexcept {
  return s == block_state::rw ? block_access::write : s == block_state::ro ? block_access::read : block_access::none;
}
constexpr std::uint32_t word_of(block_state s) noexcept { return static_cast<std::uint32_t>(s); }

/// The pager's record of a block; every block has one, in memory or not.
struct block {
  std::atomic<std::uint32_t> word;                          ///< state and waiter bits
  std::uint32_t frame;                                      ///< number in the segment's frame class; the owner's
  std::uint32_t grains : 30 OOC_GUARDED_BY(pager_mutex);    ///< those that have a frame
  std::uint32_t has_table : 1 OOC_GUARDED_BY(pager_mutex);  ///< memory for its grains' records (grain_tables.hpp)
  /// They were to become a whole block, and it could not be read: as long as it is in grains.
  std::uint32_t stays_in_grains : 1 OOC_GUARDED_BY(pager_mutex);
  std::atomic<std::uint8_t> promised;  ///< the next load for a write may leave out the promised box
  std::atomic<std::uint8_t> written;   ///< changed here since segment::take_written()
  std::atomic<std::uint8_t> known;     ///< has been in memory before
  std::atomic<std::uint8_t> read;      ///< read here since segment::take_read(), if that is recorded

  block_state state() const noexcept { return state_of(word.load(std::memory_order_acquire)); }

  /// Swaps the stable state `from` for `to`; true if it was there and the caller now owns the
  /// block.
  bool try_take(block_state from, block_state to = block_state::busy) noexcept {
    assert(!is_transient(from) && is_transient(to));
    std::uint32_t expected = word_of(from);
    return word.compare_exchange_strong(expected, word_of(to), std::memory_order_acq_rel);
  }

  /// From `out` to `queued`, for a fault handler that will wait: a failure is fatal from now on.
  bool try_queue_fault() noexcept {
    std::uint32_t expected = word_of(block_state::out);
    return word.compare_exchange_strong(expected, word_of(block_state::queued) | fault_bit, std::memory_order_acq_rel);
  }

  /// Ends a transient state: everybody who slept looks again.  Returns the waiter bits.
  std::uint32_t publish(block_state to) noexcept {
    assert(!is_transient(to) || to == block_state::flush);
    const std::uint32_t before = word.exchange(word_of(to), std::memory_order_acq_rel);
    assert(is_transient(state_of(before)));  // only its owner, or who ends its transfer, publishes
    if (before & waiters_bit) sys::futex_wake_all(word);
    return before & (waiters_bit | fault_bit);
  }

  /// From one transient state to another, keeping the waiters asleep.
  void advance(block_state to) noexcept {
    std::uint32_t w = word.load(std::memory_order_relaxed);
    assert(is_transient(state_of(w)) && is_transient(to));
    while (!word.compare_exchange_weak(w, (w & ~state_mask) | word_of(to), std::memory_order_acq_rel)) {
    }
  }

  /// Keeps a block in grains, so that nobody can take it, until end_hold(): for who brings a grain in.  Holds
  /// of several threads are counted in the word.
  bool try_hold() noexcept {
    std::uint32_t w = word.load(std::memory_order_relaxed);
    while (state_of(w) == block_state::in_grains)
      if (word.compare_exchange_weak(w, w + one_hold, std::memory_order_acq_rel)) return true;
    return false;
  }
  void end_hold() noexcept {
    [[maybe_unused]] const std::uint32_t before = word.fetch_sub(one_hold, std::memory_order_acq_rel);
    assert(state_of(before) == block_state::in_grains && before >= one_hold);
  }

  /// Sleeps until the word is no longer `seen`, which must be transient.
  void wait(std::uint32_t seen, bool in_fault_handler) noexcept {
    assert(is_transient(state_of(seen)));
    const std::uint32_t want = seen | waiters_bit | (in_fault_handler ? fault_bit : 0);
    if (seen != want && !word.compare_exchange_strong(seen, want, std::memory_order_acq_rel)) return;
    sys::futex_wait(word, want);
  }
};

}  // namespace ooc::detail
