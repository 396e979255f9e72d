// The parts of the budget that are spoken for, and every refusal for want of memory.
//
// The budget of the pool is what frames may take.  Off it go the transfer buffers of stores and what
// is reserved.  Pinned memory stays in it, and cannot make room.  Invariant: what is pinned and what
// one instruction can need (frame_needs.hpp) of the open segments fit the budget together, so that
// every access that was let begin is served; a segment, pin or reservation that would break this is
// refused, with a text that says what is needed and what to do.
//
// Lock: the pager's, which functions take that do not require it.  Threads: those of the program's
// calls.  The function that makes room by writing modified blocks is given to the constructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/frame_needs.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class memory_budget {
 public:
  /// Starts what may make room for a reservation, and waits for it; false where nothing can.  Called
  /// with the pager's lock, which it may release meanwhile.
  using room_maker = std::function<bool(unique_lock&)>;

  /// The same options.  Throws usage_error where they are out of range.
  static const runtime_options& checked(const runtime_options& o);

  memory_budget(pager_state& state, const runtime_options& o, room_maker make_room);

  /// False where it has been accounted before.  See pager::account_store().
  bool account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes);
  class reservation;
  reservation reserve(std::uint64_t bytes, const std::string& what);
  /// For the length of one call: at most half of what is spare, between `least` and `most`.  Where not
  /// even `least` is, waits for loans of other threads to end if `may_wait`.
  reservation lend(std::uint64_t least, std::uint64_t most, bool may_wait, const std::string& what);

  /// Beside what stores in use and reservations have.
  std::uint64_t budget() noexcept;
  /// The most that reserve() can be asked for now: what pins and the needs of one instruction leave.
  std::uint64_t spare() const noexcept;
  std::uint64_t default_block_bytes() const noexcept;

  /// errc::budget_too_small where a segment cannot be opened beside the others.
  [[nodiscard]] failure check_needs_of(const segment_state& s) const OOC_REQUIRES(pager_mutex);
  /// Counts pins of a segment that closes no longer.
  void forget(const segment_state& s) noexcept OOC_REQUIRES(pager_mutex);

  /// Counts pins, or says why there may be no more.
  failure count_pins(segment_state& s, std::span<const block_range> which);
  void uncount_pins(segment_state& s, std::span<const block_range> which) noexcept OOC_REQUIRES(pager_mutex);
  /// After which blocks of a segment have twins has changed.
  void recount_pins(segment_state& s) noexcept OOC_REQUIRES(pager_mutex);

  /// Asserts the invariant.
  void check_invariants() const noexcept OOC_REQUIRES(pager_mutex);

 private:
  struct accounted_store {
    std::weak_ptr<const void> store;
    std::uint64_t bytes;
  };

  bool take(unique_lock& l, std::uint64_t bytes) OOC_REQUIRES(pager_mutex);
  bool wait_for_owner(unique_lock& l) OOC_REQUIRES(pager_mutex);
  void take_back(std::uint64_t bytes, bool lent) noexcept;
  std::uint64_t unspoken_for() const noexcept OOC_REQUIRES(pager_mutex);
  frame_needs needs() const noexcept OOC_REQUIRES(pager_mutex);
  /// Their transfer buffers are no longer there.
  void forget_closed_stores() noexcept OOC_REQUIRES(pager_mutex);
  // Nothing is thrown under the lock: who takes it for the write-back at std::terminate() would not get it.
  std::pair<bool, failure> try_to_account(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes);
  std::uint64_t try_to_lend(std::uint64_t least, std::uint64_t most, bool may_wait, const std::string& what,
                            failure& refusal);
  failure refused_loan(std::uint64_t bytes, const std::string& what) const OOC_REQUIRES(pager_mutex);
  std::string taken_text() const OOC_REQUIRES(pager_mutex);
  void add_pins(segment_state& s, std::span<const block_range> which, int sign) noexcept OOC_REQUIRES(pager_mutex);

  pager_state& state_;
  const room_maker make_room_;
  const std::uint64_t default_block_;
  const bool block_chosen_;  ///< by the options
  std::vector<accounted_store> stores_ OOC_GUARDED_BY(pager_mutex);
  /// Frames of pinned blocks, counting each pin.
  std::uint64_t pinned_bytes_ OOC_GUARDED_BY(pager_mutex) = 0;
  std::uint64_t pinned_frames_ OOC_GUARDED_BY(pager_mutex) = 0;
  std::uint64_t loans_ OOC_GUARDED_BY(pager_mutex) = 0;
};

/// Memory of the budget that serves for something else.
class memory_budget::reservation {
 public:
  reservation() = default;
  reservation(memory_budget& b, std::uint64_t bytes, bool lent = false) noexcept
      : budget_(&b), bytes_(bytes), lent_(lent) {}
  ~reservation() {
    if (budget_) budget_->take_back(bytes_, lent_);
  }
  std::uint64_t bytes() const noexcept { return bytes_; }
  reservation(reservation&& o) noexcept
      : budget_(std::exchange(o.budget_, nullptr)), bytes_(o.bytes_), lent_(o.lent_) {}
  reservation& operator=(reservation&& o) noexcept {
    std::swap(budget_, o.budget_);
    std::swap(bytes_, o.bytes_);
    std::swap(lent_, o.lent_);
    return *this;
  }

 private:
  memory_budget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool lent_ = false;
};

}  // namespace ooc::detail
