// Whether the same blocks of a segment are swept again and again.
//
// A program that sweeps over somewhat more than the memory has each block evicted shortly before it comes back to
// it.  It had better keep some blocks, and let go of those that it has just left.  So passes are counted here: in a
// pass each block comes in once, and the next one begins with the same block.  When a pass (policy_numbers.hpp: so many
// over as many blocks, one after the other) has gone by, the sweep repeats.
//
// The blocks that stay in memory are then no longer seen, and nothing can be told from the order of the rest.  But it
// takes longer than a pass until as many blocks as a pass had have come in.  Where it does not, what was let go was
// needed after all: the sweep does not repeat, and has to for four times as long the next time.  (How long a pass takes
// is not known well from the first one, which may have filled the array.  Blocks that come in a second time one after
// the other belong to another pass; between new ones they are those of a second sweep.)  Where an eighth of as many
// blocks come in that were in neither of the last passes, the program has turned to something else.
//
// Not thread-safe: the pager's lock guards every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/policy/block_index.hpp"
#include "runtime/policy/policy_numbers.hpp"

namespace ooc::detail {

class repeated_sweep {
 public:
  static constexpr block_index most_blocks = 1 << 20;

  /// A block, one of `blocks`, at most most_blocks, has come in and been touched.  Of up to `worth_it` blocks some are
  /// worth keeping.  `ran_ns`: for how long the program has run since some time, its faults left out.  Allocates.
  void came_in(block_index b, block_index blocks, block_index worth_it, std::uint64_t ran_ns) {
    if (pass_of_.size() != blocks) {
      pass_of_.assign(blocks, 0);
      stop_repeating(b, ran_ns);
    } else if (repeats()) {
      ++seen_;
      elsewhere_ += !was_swept(b);
      const bool again = std::exchange(pass_of_[b], pass_) == pass_;
      again_ += again && after_again_;
      after_again_ = again;
      if (elsewhere_ > before_.blocks / 8) {
        stop_repeating(b, ran_ns);
      } else if (seen_ > before_.blocks) {
        const std::uint64_t now = ran_ns - began_ns_;
        if (passes_ == 1 && !looked_) before_.ran_ns = std::min(before_.ran_ns, now / seen_ * (seen_ - again_));
        looked_ = true;
        const bool fewer = now > before_.ran_ns + before_.ran_ns / 8;
        if (fewer) return begin_counting(ran_ns);
        needed_ = std::min(4 * needed_, most_needed);
        stop_repeating(b, ran_ns);
      }
    } else if (std::exchange(pass_of_[b], pass_) != pass_) {
      ++seen_;
    } else {
      const pass now{seen_, ran_ns - began_ns_};
      const bool whole = b == first_ && seen_ >= least && seen_ <= worth_it;
      const bool as_before = whole && passes_ > 0 && seen_ >= before_.blocks - before_.blocks / 8 &&
                             seen_ <= before_.blocks + before_.blocks / 8;
      passes_ = as_before ? passes_ + 1 : whole;
      before_ = as_before ? pass{now.blocks, std::min(now.ran_ns, before_.ran_ns)} : now;
      begin_pass(b, ran_ns);
    }
  }
  bool repeats() const noexcept { return passes_ >= needed_; }

 private:
  struct pass {
    block_index blocks = 0;
    std::uint64_t ran_ns = 0;
  };
  static constexpr block_index least = 4;
  static constexpr unsigned most_needed = 1024;

  void begin_pass(block_index b, std::uint64_t ran_ns) {
    if (++pass_ == 0) {
      std::fill(pass_of_.begin(), pass_of_.end(), std::uint8_t{0});
      pass_ = 1;
    }
    first_ = b;
    pass_of_[b] = pass_;
    begin_counting(ran_ns);
  }
  void begin_counting(std::uint64_t ran_ns) {
    seen_ = 1;
    elsewhere_ = again_ = 0;
    began_ns_ = ran_ns;
  }
  void stop_repeating(block_index b, std::uint64_t ran_ns) {
    passes_ = 0;
    looked_ = false;
    begin_pass(b, ran_ns);
  }
  /// Since it repeats there are no new passes.
  bool was_swept(block_index b) const {
    return pass_of_[b] == pass_ || pass_of_[b] == static_cast<std::uint8_t>(pass_ - 1);
  }

  std::vector<std::uint8_t> pass_of_;  ///< the pass in which each block came in last
  std::uint8_t pass_ = 0;
  block_index first_ = 0;      ///< of this pass
  block_index seen_ = 0;       ///< in this pass, or since it repeats
  block_index elsewhere_ = 0;  ///< of these, that were in no pass
  block_index again_ = 0;      ///< ..., that came in a second time, after another one that did
  bool after_again_ = false;
  std::uint64_t began_ns_ = 0;
  pass before_;          ///< the last one, of those that ran for the shortest time
  bool looked_ = false;  ///< whether it pays, since it repeats
  unsigned passes_ = 0;  ///< one after the other that were alike
  unsigned needed_ = policy_numbers::now.passes_alike;
};

}  // namespace ooc::detail
