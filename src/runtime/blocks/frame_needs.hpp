// How much memory one instruction can need at once: the least budget with which the pager can
// promise that every access is served.
//
// An instruction names at most two operands in memory, and each may lie across a border of blocks.
// So it can need two blocks that it reads and two that it writes, of any two of the open arrays,
// all at the same moment: were one evicted while another comes in, the instruction would fault for
// ever.  A block that is written needs a *twin* beside it where other processes write to its array
// (`shared`).  A copy in steps (rep movs) needs no more, as each step is served by itself.  What
// is pinned comes on top, since it cannot make room.
//
// Instructions that gather or scatter touch up to sixteen places.  They are served where the memory
// holds the blocks of all of them; nothing is promised for them at the minimum.
//
// Plain values without a lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ooc::detail {

class frame_needs {
 public:
  /// Blocks that one instruction can need at once, twins not counted.
  static constexpr std::uint64_t blocks = 4;
  /// Those of them that it may write to.
  static constexpr std::uint64_t written = 2;
  /// Frames, twins counted.
  static constexpr std::uint64_t frames = blocks + written;

  /// Adds an array; `twins`: other processes write to it too.
  constexpr void add(std::uint64_t block_bytes, bool twins) noexcept {
    largest_ = std::max(largest_, block_bytes);
    largest_written_ = std::max(largest_written_, (twins ? 2 : 1) * block_bytes);
  }

  /// Adds a segment of which nobody touches a block that is not pinned: it needs room for one.
  constexpr void add_pinned_only(std::uint64_t block_bytes, bool twins) noexcept {
    one_pinned_ = std::max(one_pinned_, (twins ? 2 : 1) * block_bytes);
  }

  /// Bytes that must be free of pins for the arrays added.
  constexpr std::uint64_t bytes() const noexcept {
    return std::max((blocks - written) * largest_ + written * largest_written_, one_pinned_);
  }

 private:
  std::uint64_t largest_ = 0;
  std::uint64_t largest_written_ = 0;
  std::uint64_t one_pinned_ = 0;
};

}  // namespace ooc::detail
