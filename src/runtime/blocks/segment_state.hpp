// The pager's record of a segment; the handle that owns it is `segment`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "runtime/blocks/block_state.hpp"
#include "runtime/blocks/counters.hpp"
#include "runtime/blocks/frame_pool.hpp"
#include "runtime/blocks/pager_mutex.hpp"
#include "runtime/blocks/segment_options.hpp"
#include "runtime/policy/segment_history.hpp"
#include "runtime/policy/write_history.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

enum class segment_use : std::uint8_t {
  open,
  closed,
  closed_with_runtime,  ///< by the end of the runtime, which found it open
};

struct segment_state {
  segment_options options;
  block_source* source = nullptr;
  frame_class* cls = nullptr;
  std::byte* base = nullptr;  ///< addresses of max_blocks blocks
  std::size_t reserved = 0;   ///< bytes of these
  std::size_t guard = 0;      ///< reserved bytes before and after them, never accessible
  block* table = nullptr;     ///< max_blocks records
  std::atomic<std::uint64_t> blocks{0};
  /// Blocks from here on are not read ahead: their addresses are being closed, or opened anew.
  std::uint64_t held_off OOC_GUARDED_BY(pager_mutex) = ~std::uint64_t{0};
  std::atomic<std::uint64_t> reach{0};  ///< bytes that may be touched: pages up to the end
  std::atomic<segment_use> use{segment_use::open};
  std::uint16_t traced_as = 0;  ///< its number in a recording (event_trace.hpp)

  /// Frames in use, linked by segment_next.
  frame* resident OOC_GUARDED_BY(pager_mutex) = nullptr;
  std::size_t resident_count OOC_GUARDED_BY(pager_mutex) = 0;
  std::uint64_t pinned_blocks OOC_GUARDED_BY(pager_mutex) = 0;  ///< counting each pin
  std::uint64_t pinned_frames OOC_GUARDED_BY(pager_mutex) = 0;  ///< the same with their twins
  std::size_t transfers OOC_GUARDED_BY(pager_mutex) = 0;        ///< loads and stores in flight
  std::size_t calls OOC_GUARDED_BY(pager_mutex) = 0;            ///< threads of the runtime within `source`
  /// Threads within pager::write_back_all().
  std::size_t writers_at_end OOC_GUARDED_BY(pager_mutex) = 0;
  mutable counters counts;  ///< of a parent, its grains included
  std::atomic<std::uint64_t> latest_place{
      0};  ///< the byte of the last touch that the pager saw, of its blocks or grains
  /// All that is decided by what has happened to its blocks.
  segment_history past OOC_GUARDED_BY(pager_mutex);
  write_history writes;
  /// The bytes that an algorithm lets a sweep read ahead; 0: an eighth of the memory.
  std::uint64_t ahead_bytes OOC_GUARDED_BY(pager_mutex) = 0;
  /// For library calls that wait.
  std::map<block_index, failure> load_errors OOC_GUARDED_BY(pager_mutex);
  /// The first one not yet reported.
  failure background_write_error OOC_GUARDED_BY(pager_mutex);
  std::atomic<std::uint64_t> dirty{0};
  /// The same addresses in grains, whose `parent` this is; nullptr where blocks are loaded whole.
  segment_state* grains = nullptr;
  segment_state* parent = nullptr;
  std::uint64_t grains_in_block = 0;  ///< with a parent
  /// With a parent: of each page of `table`, how many blocks in grains have records there; and what these pages cost.
  std::uint16_t* blocks_on_page OOC_PT_GUARDED_BY(pager_mutex) = nullptr;
  std::uint64_t table_bytes OOC_GUARDED_BY(pager_mutex) = 0;

  std::size_t block_bytes() const noexcept { return options.block_bytes; }
  /// Others may write to block b: it needs a twin.
  bool twinned(block_index b) const noexcept { return options.shared && !options.part.own.contains(b); }
  bool may_write(block_index b) const noexcept { return options.writable && options.part.may_write.contains(b); }
  bool may_have_twins() const noexcept { return options.shared && options.writable; }
  /// Frames that block b may take.
  std::uint64_t frames_of(block_index b) const noexcept { return twinned(b) && may_write(b) ? 2 : 1; }
  /// Memory in which this rank's part, with the rows beside it, could stay however much of it is
  /// modified; the whole array where there are no parts.
  std::uint64_t bytes_to_stay() const noexcept {
    if (parent) return 0;  // which counts them
    const std::uint64_t end = blocks.load(std::memory_order_relaxed);
    const auto count = [end](const block_range& r) { return std::min(r.last, end) - std::min({r.first, r.last, end}); };
    const std::uint64_t near = count(options.part.near);
    const std::uint64_t twins = options.shared ? near - count(options.part.own) : 0;
    const std::uint64_t most = options.max_resident ? options.max_resident : near;
    return (std::min(near, most) + std::min(twins, most)) * options.block_bytes;
  }
  /// Bytes of block b that are accessible while it is mapped: all but the pages past the end.
  std::size_t mapped_bytes(block_index b) const noexcept {
    const std::uint64_t end = reach.load(std::memory_order_relaxed);
    const std::uint64_t begin = b * options.block_bytes;
    return end > begin ? std::min<std::uint64_t>(end - begin, options.block_bytes) : 0;
  }
  void set_blocks(std::uint64_t n, std::uint64_t bytes) noexcept {
    blocks = n;
    const std::uint64_t all = n * options.block_bytes;
    reach = bytes ? std::min(in_whole_pages(bytes), all) : all;
  }
  std::byte* address(block_index b) const noexcept { return base + b * options.block_bytes; }
  block& at(block_index b) const noexcept { return table[b]; }
  /// Of a grain: the block that it is part of.
  block& block_of(block_index grain) const noexcept { return parent->at(grain / grains_in_block); }
  /// False for a grain whose block is not in grains (any more).
  bool may_come_in(block_index b) const noexcept { return !parent || block_of(b).state() == block_state::in_grains; }
  /// The grains of some blocks.
  block_range grains_of(const block_range& r) const noexcept {
    const std::uint64_t n = grains->grains_in_block, end = grains->blocks.load(std::memory_order_relaxed);
    const auto at = [&](block_index b) { return b > end / n ? end : std::min(end, b * n); };
    return {at(r.first), at(r.last)};
  }
  frame* frame_of(const block& b) const noexcept { return &cls->frames[b.frame]; }
};

/// Keeps the block of a grain in grains while the grain is brought in; holds nothing where the segment has
/// blocks.  When one has ended without a frame for the grain, grain_tables::grain_left() is called.
class grain_hold {
 public:
  grain_hold(segment_state& s, block_index grain) noexcept
      : block_(s.parent ? &s.block_of(grain) : nullptr), holds_(!block_ || block_->try_hold()) {}
  ~grain_hold() { end(); }
  grain_hold(const grain_hold&) = delete;
  grain_hold& operator=(const grain_hold&) = delete;

  /// False where the block is not in grains (any more).
  explicit operator bool() const noexcept { return holds_; }
  void end() noexcept {
    if (std::exchange(holds_, false) && block_) block_->end_hold();
  }

 private:
  block* const block_;
  bool holds_;
};

}  // namespace ooc::detail
