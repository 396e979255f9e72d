// The history of the blocks of a segment, and what follows from it: all that the pager decides by the past.
//
// The pager tells what happens, asks what to do, and does it; nothing here knows how.  A segment with grains has two of
// these, one for its blocks and one for its grains.  The parts, each of which is one idea:
//
//   read_ahead        sweeps and walks among the touches: what is touched next
//   read_ahead_yield  whether what was read ahead has been touched
//   left_behind       grains that a walk down columns is done with
//   repeated_sweep    whether the same blocks are swept again and again
//   aged_return       how many of the blocks that have aged come back
//   grain_choice      whether blocks fill up that come in by grains
//   waste_watch       whether the program has had the time to touch what it reads
//
// Deterministic: the same calls have the same answers; time comes with them.  No locks and no addresses; one at a time
// may call, which the pager's lock sees to.  Calls about touches, first mappings and evictions allocate nothing, for
// they are made in fault handlers; those that follow sweeps are for the service thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/policy/aged_return.hpp"
#include "runtime/policy/block_index.hpp"
#include "runtime/policy/block_past.hpp"
#include "runtime/policy/grain_choice.hpp"
#include "runtime/policy/left_behind.hpp"
#include "runtime/policy/read_ahead.hpp"
#include "runtime/policy/repeated_sweep.hpp"
#include "runtime/policy/touch_order.hpp"
#include "runtime/policy/waste_watch.hpp"

namespace ooc::detail {

class segment_history {
 public:
  /// A sweep that has come to a touch.
  struct sweep {
    std::int64_t step = 0;  ///< of blocks; of bytes where grains are swept; 0: the touch belongs to none
    bool walks = false;     ///< over grains: by more than one at a time
    bool runs = false;      ///< over grains: from one to the next for so long that their block had better be whole
  };

  /// Blocks that one instruction may need at once: those that came last stay.
  static constexpr std::size_t in_use = 4;

  /// Takes the program's advice about its touches.
  void advise(access_pattern p) noexcept { streams_.advise(p); }
  access_pattern pattern() const noexcept { return streams_.pattern(); }
  /// Of grains: what a walk down columns steps by from one column to the next.
  void expect_columns_of(std::uint64_t element_bytes) noexcept {
    streams_.guess_outer_step(static_cast<std::int64_t>(element_bytes));
  }

  // --- what has happened

  /// A touch of a block in memory that was not mapped; `inactive`: its turn to be evicted had come near.
  void touched(block_past& p, bool inactive) noexcept;
  /// The first touch of what was read ahead.
  void used(const block_past& p) noexcept { yield_.used(p.stands_for); }
  /// It leaves without a touch.
  void wasted(const block_past& p) noexcept { yield_.wasted(p.stands_for); }
  void evicted() noexcept { aged_.evicted(); }
  /// A touch has mapped a whole block; `ran_ns`: for how long all threads have run, their faults left out, since some
  /// time; `in_grains`: it could come in by grains.  True where the program is to be told that it reads for nothing.
  bool mapped_whole(std::uint64_t bytes, std::uint64_t ran_ns, bool in_grains) noexcept;
  /// The grains of a block have filled it.
  void filled() noexcept { choice_.filled(); }

  // --- what comes next

  /// Whether a touch of block `b`, which is out, is better served by a grain; asked once for each such touch.
  bool comes_in_grains(block_index b, bool all_fits) noexcept;
  /// Of a segment with blocks: the sweep that has come to `b`, and the blocks to fetch, as read_ahead::touched() says
  /// them.
  sweep follow(block_index b, block_index blocks, unsigned limit, const ahead_group& g,
               std::vector<block_index>& wanted);
  /// The same for grains, by the byte that was touched.
  sweep follow_grains(std::uint64_t place, std::uint64_t bytes, std::uint64_t grain, unsigned limit, bool was_out,
                      std::vector<block_index>& wanted);
  /// A run goes on in its block, which is whole now.
  void run_ends() noexcept { streams_.forget_latest(); }

  // --- what leaves, and what is written before

  /// Where a sweep has come to `b`: the block that is not wanted soon, if any.  `worth_it`: of so many that are swept
  /// some can stay in memory.
  std::optional<block_index> not_wanted_soon(block_index b, block_index blocks, block_index worth_it,
                                             std::uint64_t ran_ns);
  /// A grain is about to be read ahead of a walk.
  void names_ahead(block_index grain) { left_.add(grain); }
  /// A grain that a walk has come past so long ago that it is done with the one before in its row.
  std::optional<block_index> next_left() noexcept;
  /// So many of them have aged.
  void aged_left(std::size_t n) noexcept { left_.aged(n); }
  /// Of so many blocks that have aged: how many from those that leave next are worth writing.
  std::size_t worth_writing(std::size_t queue) const noexcept { return aged_.worth_writing(queue); }

  /// Of touches that were followed.
  const touch_order& order() const noexcept { return order_; }
  bool wasteful() const noexcept { return waste_.found(); }

  /// The hint that the program is to be given, once; or nothing.
  std::string take_hint(const std::string& array) { return waste_.take() ? waste_.text(array) : std::string(); }

 private:
  /// Whatever the order of its touches looks like.
  bool is_no_sweep() const noexcept {
    return streams_.pattern() == access_pattern::automatic && choice_.hardly_touched();
  }

  read_ahead streams_;
  read_ahead_yield yield_;
  left_behind left_;  ///< of grains
  repeated_sweep repeated_;
  std::array<block_index, in_use> came_lately_{};  ///< and were touched: a ring
  std::size_t came_ = 0;
  aged_return aged_;
  grain_choice choice_;
  waste_watch waste_;
  touch_order order_;
};

}  // namespace ooc::detail
