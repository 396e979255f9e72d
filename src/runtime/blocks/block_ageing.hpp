// Which blocks age, and when: their access is taken away, so that a touch shows that they are still used.
//
// Half of the blocks in memory are to have aged (replacement.hpp).  A block ages in place or by moving to its frame, as
// its mapping says; grains do so many at a time, since to take a page away interrupts the other processors.
//
// Lock: the pager's, which every call has, and may release meanwhile.  Nothing allocates: this may run in a fault
// handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/blocks/block_source.hpp"
#include "runtime/blocks/block_state.hpp"
#include "runtime/blocks/pager_mutex.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class resident_set;
struct frame;
struct segment_state;

class block_ageing {
 public:
  explicit block_ageing(resident_set& blocks) noexcept : blocks_(blocks) {}

  /// A block comes in: up to four others age for it, or as many grains together as came in since.
  void one_came_in(unique_lock& l) noexcept OOC_REQUIRES(pager_mutex);
  /// Lets grains age before faults have to.
  void ahead(unique_lock& l) noexcept OOC_REQUIRES(pager_mutex);

  /// Lets these grains age, as far as they are mapped; returns how many did.
  std::size_t these(unique_lock& l, segment_state& grains, std::span<const block_index> which) noexcept
      OOC_REQUIRES(pager_mutex);

  /// Takes the access to a mapped block away, which the caller owns, and leaves it in its queue.  The state to be
  /// published; `busy` where the kernel holds it: it has been published as it was then.
  block_state take_access(unique_lock& l, frame* f, block_state was) noexcept OOC_REQUIRES(pager_mutex);

  /// Bytes of blocks that have aged, all in all.
  std::uint64_t bytes() const noexcept OOC_REQUIRES(pager_mutex) { return bytes_; }

 private:
  /// Lets one block age; false where none can.
  bool one(unique_lock& l) noexcept OOC_REQUIRES(pager_mutex);
  /// Where the oldest block is a grain, and so many times as many as should age together are to: they do.  False
  /// where it is none.
  bool grains(unique_lock& l, std::size_t times) noexcept OOC_REQUIRES(pager_mutex);
  void together(unique_lock& l, std::size_t most) noexcept OOC_REQUIRES(pager_mutex);
  struct owned_grains;
  bool alone(unique_lock& l, frame* f, block_state was) noexcept OOC_REQUIRES(pager_mutex);
  bool take(owned_grains& g, frame* f) noexcept OOC_REQUIRES(pager_mutex);
  void take_away(unique_lock& l, const owned_grains& g) noexcept OOC_REQUIRES(pager_mutex);

  resident_set& blocks_;
  std::uint64_t bytes_ OOC_GUARDED_BY(pager_mutex) = 0;
  std::size_t came_in_ OOC_GUARDED_BY(pager_mutex) = 0;  ///< since some grains aged together
};

}  // namespace ooc::detail
