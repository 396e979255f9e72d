// The frames: the memory of the budget, cut into slots of the sizes that blocks have.
//
// Every block size has a class of its own with its own range of addresses; a frame is a slot of
// that range.  Slots cost addresses, not memory: the pool counts the bytes of the slots that hold
// memory and keeps them within the budget; memory moves between classes by giving it back to the
// system.
//
// Frames whose size is a multiple of 2 MiB are aligned to it and backed by huge pages.  A frame's
// pages may be away, at the address of its block; the slot is then an empty mapping.
//
// Invariants: a slot that was ever used is in use, free (with memory) or empty (without); what is in use and what was
// charged are used(); these and the free ones are within the budget, but for what was charged.
//
// Not thread-safe: the pager's lock guards every call.  take() and give_back() allocate nothing, so
// that fault handlers may call them.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/blocks/block_source.hpp"
#include "runtime/blocks/pager_mutex.hpp"
#include "runtime/policy/block_past.hpp"

namespace ooc::detail {

class block_mapping;
class bytes_in_doubt;
struct segment_state;
struct frame_class;

enum class frame_list : std::uint8_t { none, active, inactive };

/// One slot.  What the mutex does not guard belongs to the owner of the block (block_state.hpp).
struct frame {
  std::byte* memory;
  frame_class* cls;
  segment_state* segment;
  block_index block;
  /// The replacement or free list.
  frame* prev OOC_GUARDED_BY(pager_mutex);
  frame* next OOC_GUARDED_BY(pager_mutex);
  frame_list list OOC_GUARDED_BY(pager_mutex);  ///< where it is linked
  /// Frames of one segment.
  frame* segment_prev OOC_GUARDED_BY(pager_mutex);
  frame* segment_next OOC_GUARDED_BY(pager_mutex);
  frame* twin;            ///< shared segments: what the store has of a block that was written to
  bytes_in_doubt* doubt;  ///< what of it the store may have or not, if anything; owned
  std::uint32_t pins OOC_GUARDED_BY(pager_mutex);
  std::uint32_t write_pins OOC_GUARDED_BY(pager_mutex);
  std::atomic<bool> dirty;
  std::atomic<bool> stale;                   ///< invalidated while loading: drop on arrival
  std::atomic<bool> failed;                  ///< the last attempt to write it failed
  bool copying OOC_GUARDED_BY(pager_mutex);  ///< a copy of it is on its way to the store
  bool zeroed;                               ///< memory as it came from the system, all zeros
  bool unbacked;                             ///< the system may not have given some of its pages yet
  bool partial;                              ///< loaded without the promised box
  block_past past;                           ///< for segment_history and write_history
  bool merging;                              ///< being loaded for a block that was in grains
  frame* parts;              ///< grains that become this block when it has been loaded, linked by `next`
  std::size_t mapped_bytes;  ///< at the block's address, while it is mapped
};

struct frame_class {
  std::size_t bytes = 0;
  std::size_t cost = 0;              ///< of the budget: of a grain its descriptor too, which is 3 % of it
  block_mapping* mapping = nullptr;  ///< how they come to addresses
  bool in_grains = false;            ///< they take no mappings of the process, and no huge pages
  std::size_t capacity = 0;          ///< slots
  std::size_t made = 0;              ///< slots that were ever used
  std::byte* region = nullptr;
  frame* frames = nullptr;  ///< `capacity` descriptors
  frame* free = nullptr;    ///< not in use, with memory
  frame* empty = nullptr;   ///< not in use, memory given back

  std::uint32_t number_of(const frame* f) const noexcept { return static_cast<std::uint32_t>(f - frames); }
};

class frame_pool {
 public:
  /// `mapping` is told of the frames; it outlives them.
  explicit frame_pool(std::uint64_t budget, block_mapping* mapping = nullptr);
  ~frame_pool();
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;

  /// The class for blocks of `bytes` (a multiple of 4 KiB).  Allocates; throws usage_error
  /// (ENOMEM) where addresses run out, and what block_mapping::add_frames() throws.  Whether the budget can do
  /// with such blocks is for the pager to judge (frame_needs.hpp).
  frame_class& class_for(std::size_t bytes) { return class_for(bytes, mapping_, false); }
  /// The same for grains, which `mapping` moves.
  frame_class& class_for_grains(std::size_t bytes, block_mapping& mapping) { return class_for(bytes, &mapping, true); }

  /// The addresses of the process that a class needs if it is not there yet.
  std::uint64_t addresses_for(std::size_t bytes, bool in_grains) const noexcept;

  /// A frame with memory, or nullptr where the budget is used up.
  frame* take(frame_class& c) noexcept OOC_REQUIRES(pager_mutex);
  void give_back(frame* f) noexcept OOC_REQUIRES(pager_mutex);

  /// Takes bytes off the budget (transfer buffers); false where frames in use are in the way.
  bool reserve(std::uint64_t bytes) noexcept OOC_REQUIRES(pager_mutex);
  void unreserve(std::uint64_t bytes) noexcept { budget_ += bytes; }
  /// Counts memory that is used beside frames, even if it is more than is left.
  void charge(std::uint64_t bytes) noexcept OOC_REQUIRES(pager_mutex) {
    charged_ += bytes;
    committed_ += bytes;
    used_ += bytes;
  }
  void refund(std::uint64_t bytes) noexcept OOC_REQUIRES(pager_mutex) {
    assert(charged_ >= bytes);
    charged_ -= bytes;
    committed_ -= bytes;
    used_ -= bytes;
  }

  std::uint64_t budget() const noexcept { return budget_; }
  /// The budget before anything was taken off it.
  std::uint64_t whole_budget() const noexcept { return whole_budget_; }
  /// Frames that the mappings of a process allow.
  std::size_t max_frames() const noexcept { return max_frames_; }
  /// Bytes of frames in use, and what was charged.
  std::uint64_t used() const noexcept { return used_; }
  /// Asserts the invariants.
  void check_invariants() const noexcept OOC_REQUIRES(pager_mutex);
  /// True while blocks of `bytes` together can come in, and a quarter of the mappings is left.
  bool has_room(std::uint64_t bytes) const noexcept {
    return used_ + bytes <= budget_ && frames_mapped_ <= max_frames_ - max_frames_ / 4;
  }

 private:
  frame_class& class_for(std::size_t bytes, block_mapping* mapping, bool in_grains);
  frame_class* find(std::size_t bytes, bool in_grains) const noexcept;
  std::size_t slots_for(std::size_t bytes, bool in_grains) const noexcept;
  bool make_room(std::size_t bytes, const frame_class* keep) noexcept OOC_REQUIRES(pager_mutex);
  /// Frames in use hold memory, and those that hold memory are within the budget, but for what was charged.
  bool sums_hold() const noexcept {
    return used_ <= committed_ && committed_ <= budget_ + charged_ && budget_ <= whole_budget_ &&
           frames_mapped_ <= max_frames_;
  }

  block_mapping* const mapping_;
  const std::uint64_t whole_budget_;
  std::uint64_t budget_;
  std::uint64_t committed_ = 0;  ///< bytes of slots that hold memory, in use or free
  std::uint64_t used_ = 0;
  std::uint64_t charged_ = 0;
  std::size_t frames_mapped_ = 0;  ///< in use, of blocks that take mappings
  std::size_t max_frames_;         ///< resident blocks that vm.max_map_count allows
  std::vector<std::unique_ptr<frame_class>> classes_;
};

}  // namespace ooc::detail
