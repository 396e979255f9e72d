// Where the blocks of a segment come from and go to.
//
// The pager knows blocks and frames only; a source turns a block number into a request to a file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>

#include "oocarray/error.hpp"
#include "runtime/policy/block_index.hpp"

namespace ooc::detail {

/// True if one of the ranges, which ascend and do not overlap, has block b.
inline bool contains(std::span<const block_range> ranges, block_index b) noexcept {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), b,
                                      [](block_index i, const block_range& r) { return i < r.first; });
  return after != ranges.begin() && std::prev(after)->contains(b);
}

inline constexpr block_range every_block{0, ~block_index{0}};

/// The part of a block that has to be read.
enum class load_part : std::uint8_t {
  whole,
  /// Only what lies outside the box that the program promised to overwrite.  The frame is zeroed
  /// beforehand.
  outside_promise,
};

/// A block and where its bytes go.
struct block_place {
  block_index block = 0;
  std::byte* frame = nullptr;
};

/// A block and where its bytes are.
struct stored_block {
  block_index block = 0;
  const std::byte* from = nullptr;
};

class block_source {
 public:
  /// How a transfer has ended, and the bytes that were asked of the store or given to it.
  using completion = std::function<void(const failure&, std::uint64_t bytes)>;

  virtual ~block_source() = default;

  /// Starts reading a block into `frame`, which stays valid and untouched until `done`, called once
  /// on any thread, also from within this call.  Called by threads of the runtime or by threads in
  /// library calls, never by a fault handler.
  virtual void load(block_index b, load_part part, std::byte* frame, completion done) = 0;

  /// Reads a block that lies whole in the store, at once and in the calling thread; the bytes that were read, or 0,
  /// with nothing said about the frame, where that takes more than a read: load() does what it takes.  Called in
  /// fault handlers: it waits for the disk, and must not allocate or lock.
  virtual std::uint64_t load_inline(block_index /*b*/, std::byte* /*frame*/) noexcept { return 0; }

  /// How many consecutive blocks one request fetches at little more than the cost of one, because
  /// they lie side by side in regions that are small for the store; 1: each may come by itself.
  /// Must not block: may be called with the pager's lock held.
  virtual unsigned fetched_together() const noexcept { return 1; }

  /// The same as load() of several blocks, ascending and whole, with one answer for all: after a
  /// failure each of them is undefined.
  virtual void load_together(std::span<const block_place> blocks, completion done);

  /// Starts writing a block from `frame`, which does not change until `done`: acknowledged then.
  virtual void store(block_index b, const std::byte* frame, completion done) = 0;

  /// The same as store() of several blocks, ascending, with one answer for all: after a failure each of them may
  /// have been written or not.
  virtual void store_together(std::span<const stored_block> blocks, completion done);

  /// The same for a block that others write to as well: sends only the elements that differ from
  /// `twin`, the block as the store has it as far as this process knows.
  virtual void store_diff(block_index b, const std::byte* frame, const std::byte* twin, completion done) = 0;

  /// What has been stored is where other programs look for it: at the end of every writeback.  Waits.
  virtual failure flush() { return {}; }

  /// Why these changes must not be sent, which is asked before store_diff(); nothing if they may be.
  virtual failure refusal(block_index, const std::byte* /*frame*/, const std::byte* /*twin*/) const { return {}; }

  /// True if `load(b, part, ...)` would transfer nothing: the bytes of the frame are then as good
  /// as loaded.  Called in fault handlers: it must not allocate, lock or block.
  virtual bool nothing_to_load(block_index b, load_part part) const noexcept = 0;

  /// For messages: the coordinates of the element at a byte of block b, which may lie past the last
  /// one.  Returns how many there are; 0: not known.  Called in fault handlers, as above.
  using place_name = std::array<std::uint64_t, 8>;
  virtual std::size_t element_at(block_index /*b*/, std::uint64_t /*offset*/, place_name& /*at*/) const noexcept {
    return 0;
  }
};

}  // namespace ooc::detail
