// Recognises sweeps over the blocks of a segment and says which blocks to fetch next.
//
// A sweep is an arithmetic progression of first touches: forward, backward or strided, several of
// them interleaved (Jacobi reads three rows and writes one).  A strided sweep that leaves the
// segment, as a walk down the columns of tiles does, is expected to go on where its last line
// began, one outer step further.  The distance read ahead doubles with every confirmation, up to a
// limit.
//
// Lines may be staggered.  Where rows are no whole number of grains long, a walk down a column comes to new grains in
// every k-th row only, in the next column again in every k-th, but others: a line of few touches, which begins
// one constant step after the last one's start, modulo the stride.
//
// Where the store gives neighbouring blocks more cheaply together, they are asked for in aligned
// groups: a sweep from block to block takes the rest of a group that it comes to, and one that has
// been seen to step to the next block with each line takes the blocks that its next lines will
// touch, as many as there is room for until then.
//
// Small blocks are asked for in batches: when half of what was asked for has been touched, the next half.
//
// Not thread-safe: the pager's lock guards every call.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "oocarray/access.hpp"
#include "runtime/policy/block_index.hpp"
#include "runtime/policy/policy_numbers.hpp"

namespace ooc::detail {

/// Groups of `size` blocks, beginning at multiples of it, and the blocks that may be in memory
/// before they are touched.
struct ahead_group {
  unsigned size = 1;
  std::uint64_t room = 0;
};

/// When a sweep asks for more.
enum class refill : std::uint8_t {
  at_each_touch,  ///< for all that lies ahead, also what has been asked for
  by_halves,      ///< when half of what was asked for has been touched, or a block was not there
};

class read_ahead {
 public:
  void advise(access_pattern p) noexcept { pattern_ = p; }
  access_pattern pattern() const noexcept { return pattern_; }
  void forget() noexcept;
  /// The step from one line of a strided sweep to the next, as long as none has been seen.
  void guess_outer_step(std::int64_t step) noexcept { outer_guess_ = step; }
  /// How many touches the sweep has had that the last call of touched() was about.
  unsigned run() const noexcept { return latest_ ? latest_->run : 0; }
  /// It goes on elsewhere.
  void forget_latest() noexcept {
    if (latest_) *latest_ = {};
  }
  /// True if a sweep that is known, or has just come to a neighbour, would come to block `b` next.
  bool expects(block_index b) const noexcept;

  /// Block `b` of `blocks` was touched for the first time since it came in.  Appends to `wanted`
  /// the blocks to fetch, nearest first; those already in memory may be among them.  The sweep is
  /// followed for at most `limit` blocks, and groups are completed.  `was_out`: it had to be waited for, so that
  /// what was asked for is not there.
  /// Returns the step of the sweep, 0 where the touch belongs to none.
  std::int64_t touched(block_index b, block_index blocks, unsigned limit, const ahead_group& g,
                       std::vector<block_index>& wanted, refill when = refill::at_each_touch, bool was_out = true);

 private:
  struct stream {
    std::int64_t last = -1;  ///< block touched last; -1: slot unused
    std::int64_t stride = 0;
    std::int64_t line_start = 0;  ///< where this line of a strided sweep began
    std::int64_t outer = 0;       ///< from one line's start to the next; 0: not known yet
    bool staggered = false;       ///< what lies outside the first stride of the segment then begins within it
    unsigned window = 0;
    unsigned run = 0;        ///< touches
    unsigned asked = 0;      ///< steps beyond `last` that have been asked for
    std::uint64_t used = 0;  ///< time of the last touch
  };

  std::int64_t step(const stream& s, std::int64_t from, std::int64_t blocks, std::int64_t& line_start) const noexcept;
  /// Steps from the last touch that may be the next one.
  static std::int64_t reach_of(const stream& s) noexcept { return std::max<std::int64_t>(s.window, 1) + 1; }
  static unsigned lines_together(const stream& s, block_index blocks, unsigned limit, const ahead_group& g) noexcept;
  stream* match(std::int64_t b, std::int64_t blocks) noexcept;
  static void advance(stream& s, std::int64_t b, std::int64_t steps) noexcept;
  std::int64_t outer_of(const stream& s) const noexcept {
    return s.outer ? s.outer : (s.stride > 0 ? outer_guess_ : -outer_guess_);
  }
  stream* at_end_of_line(std::int64_t stride, std::int64_t blocks) noexcept;
  static void begin_line(stream& s, std::int64_t start, std::int64_t b) noexcept;
  stream* begin(std::int64_t b, std::int64_t blocks) noexcept;

  static constexpr std::size_t max_streams = 8;
  static constexpr std::size_t max_recent = 16;

  access_pattern pattern_ = access_pattern::automatic;
  std::array<stream, max_streams> streams_{};
  std::array<std::int64_t, max_recent> recent_ = [] {
    std::array<std::int64_t, max_recent> a{};
    a.fill(-1);
    return a;
  }();
  std::int64_t outer_guess_ = 1;
  stream* latest_ = nullptr;
  std::uint64_t clock_ = 0;
  std::uint64_t last_recent_ = 0;  ///< when recent_[0] came
};

/// How many of the blocks that were read ahead were used, and how many were wasted.
class read_ahead_yield {
 public:
  void used(unsigned blocks = 1) noexcept { count(used_, blocks); }
  void wasted(unsigned blocks = 1) noexcept { count(wasted_, blocks); }
  /// More than a third of them was for nothing, lately.
  bool is_poor() const noexcept { return wasted_ > policy_numbers::now.poor_from + used_ / 2; }

 private:
  void count(unsigned& n, unsigned blocks) noexcept {
    n += blocks;
    if (used_ + wasted_ < 4096) return;
    used_ /= 2;
    wasted_ /= 2;
  }

  unsigned used_ = 0;
  unsigned wasted_ = 0;
};

}  // namespace ooc::detail
