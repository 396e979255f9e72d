// The blocks that are in memory: how they get a frame, are mapped, age, and leave.
//
// Invariants: the frames of a segment are linked in segment_state::resident, resident_count of them.  A frame that
// stands in the order of replacement is that of its block, and not pinned.
//
// Owns the pager's lock, `pager_mutex` to clang.  It is taken for bookkeeping only: never across a
// system call that moves pages, never while waiting for a block.  Functions that take a unique_lock
// expect it held, may release it meanwhile, and hold it again when they return; what OOC_REQUIRES the
// mutex without taking a lock holds it throughout.  Everything here may run in a fault
// handler: nothing allocates, throws or logs.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "oocarray/stats.hpp"
#include "runtime/blocks/block_ageing.hpp"
#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/frame_needs.hpp"
#include "runtime/blocks/frame_pool.hpp"
#include "runtime/blocks/grain_tables.hpp"
#include "runtime/blocks/pager_mutex.hpp"
#include "runtime/blocks/replacement.hpp"
#include "runtime/blocks/segment_state.hpp"
#include "runtime/policy/event_trace.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

/// How blocks come to their addresses, and grains, which may do so in the same way.
struct block_mappings {
  std::unique_ptr<block_mapping> blocks = make_signal_mapping();
  std::unique_ptr<block_mapping> another_for_grains = {};
  block_mapping* for_grains = nullptr;  ///< one of the two; nullptr: there are no grains
};

/// Asserts that the frames of a segment and its blocks belong together.
void check_frames(const segment_state& s) noexcept OOC_REQUIRES(pager_mutex);

class resident_set {
 public:
  event_trace trace;
  counters all_counts;  ///< of all segments, and of what goes past them

  using lock_type = unique_lock;

  explicit resident_set(std::uint64_t budget, block_mappings m = {})
      : mappings_(std::move(m)), pool_(budget, mappings_.blocks.get()) {}

  ooc::mutex& mutex() noexcept OOC_RETURN_CAPABILITY(pager_mutex) { return mutex_; }
  frame_pool& pool() noexcept OOC_REQUIRES(pager_mutex) { return pool_; }
  replacement& order() noexcept OOC_REQUIRES(pager_mutex) { return order_; }
  /// Counts something of a segment; of grains it is counted with their blocks.
  void count(const segment_state& s, counters::number counters::*what, std::uint64_t n = 1) noexcept {
    counters::add(all_counts.*what, n);
    counters::add((s.parent ? *s.parent : s).counts.*what, n);
  }
  block_mapping& mapping() noexcept { return *mappings_.blocks; }
  /// How grains come to their addresses; nullptr: there are none.
  block_mapping* mapping_of_grains() noexcept { return mappings_.for_grains; }

  /// A frame for a block of `s`, linked to it, from the free ones or by evicting a clean block; the
  /// blocks that must age do.  nullptr where only dirty, pinned or busy blocks are left, beside
  /// those that came last: the instruction that faulted may need them too, and would otherwise
  /// fault for ever, each of its blocks evicting another.
  frame* obtain(lock_type& l, segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    return obtain_linked(l, s, {frame_needs::blocks - 1});
  }
  /// The same for a block that nobody waits for.
  frame* obtain_ahead(lock_type& l, segment_state& s) noexcept OOC_REQUIRES(pager_mutex) {
    return obtain_linked(l, s, {frame_needs::blocks, nullptr, true});
  }

  /// A frame that belongs to no block, for the twin of `f`, whose block the caller owns; nullptr as for
  /// obtain().  `f` is one of those that the instruction needs, wherever it stands.  A segment's own limit
  /// does not count twins.
  frame* obtain_twin(lock_type& l, const frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    return obtain(l, *f->segment, false, {frame_needs::blocks - 1, f});
  }

  /// Takes bytes off the budget, evicting clean blocks; false where that is not enough.
  bool reserve(lock_type& l, std::uint64_t bytes) noexcept OOC_REQUIRES(pager_mutex);

  /// A block that the caller owns has been touched.
  void touched(frame* f) noexcept OOC_REQUIRES(pager_mutex) {
    f->segment->past.touched(f->past, f->list == frame_list::inactive);
    order_.make_active(f);
  }

  block_ageing& ageing() noexcept OOC_REQUIRES(pager_mutex) { return ageing_; }

  /// Ties `f` to block `b`, which the caller owns.
  void assign(frame* f, segment_state& s, block_index b) noexcept OOC_REQUIRES(pager_mutex);

  /// Gives the frame of an owned block back and publishes `out`; of the last grain of a block also what the block's
  /// records take.  The frame is not mapped.
  void release(frame* f) noexcept OOC_REQUIRES(pager_mutex);
  /// Gives a frame back that obtain() gave, and that has not been tied to a block.
  void abandon(frame* f) noexcept OOC_REQUIRES(pager_mutex);

  grain_tables& tables() noexcept OOC_REQUIRES(pager_mutex) { return tables_; }

  // The caller owns the block; see block_mapping.hpp.
  void map_in(frame* f, bool writable) noexcept OOC_EXCLUDES(pager_mutex);
  [[nodiscard]] bool map_out(frame* f, block_access has) noexcept OOC_EXCLUDES(pager_mutex);
  void set_access(frame* f, block_access to) noexcept OOC_EXCLUDES(pager_mutex);
  /// Gives up an owned block that map_out() has left as it was: it is in use.
  void give_back_held(frame* f, block_state was) noexcept OOC_REQUIRES(pager_mutex);
  /// Takes a mapped block out whose bytes nobody wants any more.
  void drop_bytes(frame* f, block_access has) noexcept OOC_EXCLUDES(pager_mutex);

  void mark_dirty(frame* f) noexcept;
  /// A block that is read comes in, which the caller owns: a grain of those that will probably be written is marked
  /// dirty.
  void guess_dirty(frame* f) noexcept;
  /// Gives the twin back.
  void mark_clean(frame* f) noexcept OOC_REQUIRES(pager_mutex);

 private:
  struct victim {
    frame* taken = nullptr;
    block_state was = block_state::out;
  };
  /// The blocks that must stay: so many of those that came last, beside the one that is about to be written; for a
  /// block that nobody waits for, also the last that was pinned of each segment with pins only, unless one is pinned
  /// now.
  struct kept {
    std::size_t latest = 0;
    const frame* written = nullptr;
    bool pinned_last = false;
  };
  victim take_clean_victim(const segment_state* only, kept keep) noexcept OOC_REQUIRES(pager_mutex);
  bool evict(lock_type& l, const segment_state* only, kept keep) noexcept OOC_REQUIRES(pager_mutex);
  frame* obtain_linked(lock_type& l, segment_state& s, kept keep) noexcept OOC_REQUIRES(pager_mutex);
  frame* obtain(lock_type& l, segment_state& s, bool limited, kept keep) noexcept OOC_REQUIRES(pager_mutex);
  void link(frame* f, segment_state& s) noexcept OOC_REQUIRES(pager_mutex);
  void unlink(frame* f) noexcept OOC_REQUIRES(pager_mutex);

  ooc::mutex mutex_;
  const block_mappings mappings_;  ///< outlives the frames
  frame_pool pool_ OOC_GUARDED_BY(pager_mutex);
  grain_tables tables_ OOC_GUARDED_BY(pager_mutex){pool_};
  replacement order_ OOC_GUARDED_BY(pager_mutex);
  block_ageing ageing_ OOC_GUARDED_BY(pager_mutex){*this};
};

}  // namespace ooc::detail
