// A segment: a reserved range of addresses whose blocks the pager moves in and out.
//
// The handle that local_array and block_core hold.  Every reference into its addresses is valid
// until it is closed; they stay reserved until the handle is destroyed, so that a touch in between
// is a fault that can be named, and not an access to something else.  The same holds for addresses
// before and after the blocks.  All functions are thread-safe unless they say
// otherwise, and none may be called from a signal handler or from a block_source completion.
//
// The calls of a program between its passes (writeback, invalidate, prefetch, advise, pin, promise) have faults come to
// the library's handler again, whichever was installed meanwhile (fault_handler::reclaim()).
//
// A block is *dirty* from the first write to it until its write has been acknowledged by the
// source; a failed write leaves it dirty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "oocarray/access.hpp"
#include "runtime/blocks/segment_options.hpp"

namespace ooc::detail {

class pager;
struct block;
struct segment_state;

class segment;

/// The bytes [begin(), end()) of a segment, which come into memory as one: a block, or a grain of one.  For transfers
/// past the blocks (element_transfer); see "Elements by index" in docs/architecture.md.  What a unit is changes with
/// time; all may be asked of one that is no longer.
class segment_unit {
 public:
  /// The grain of a byte whose block is in grains now, else its block.
  segment_unit(const segment& s, std::uint64_t place) noexcept;

  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return end_; }

  /// Whether it is neither in memory nor on its way there.  What the store held of it when this was true is what
  /// everybody has written to it before.
  bool is_out() const noexcept;
  /// Whether a read of it is no fault, as long as nobody evicts it.
  bool is_mapped() const noexcept;
  /// Waits while it is on its way into memory or out of it.  The caller keeps nothing out.
  void await() const noexcept;
  /// Takes it if it is out, so that nobody can bring it in until let_in() is called with the result: it may be written
  /// to in the store.  The promise of a block ends.  nullptr where it is not out.  Who touches it meanwhile sleeps, so
  /// until let_in() the caller blocks signals and touches no array.
  block* keep_out() const noexcept;
  void let_in(block* kept) const noexcept;
  /// As segment::pin() and unpin() of the block.  Of a grain whose block is not in grains any more the block is pinned,
  /// and this is the block from then on.
  failure pin(access_mode mode);
  void unpin(access_mode mode) noexcept;

 private:
  block& block_itself() const noexcept;
  segment_state& state() const noexcept;

  const segment* segment_;
  std::uint64_t begin_, end_;
  bool grain_;
};

class segment {
 public:
  /// `source` must outlive the segment.  Throws usage_error (errc::budget_too_small) where what is
  /// not pinned of the budget could not hold the blocks that one instruction can need at once
  /// (frame_needs.hpp: 4 blocks of this size, 6 of a shared segment, more where another segment has
  /// larger ones), and (ENOMEM) where the addresses that the process may have run out (address_room.hpp).
  segment(pager& p, segment_options options, block_source& source);
  /// close(), and gives up the addresses.
  ~segment();
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  /// Drops everything, dirty or not: call writeback() before.  Of the other functions only base(),
  /// blocks() and closed() may be called afterwards; the pager may be gone.
  void close(bool with_runtime = false) noexcept;
  bool closed() const noexcept;

  std::byte* base() const noexcept;
  std::uint64_t block_bytes() const noexcept;
  std::uint64_t blocks() const noexcept;
  detail::pager& served_by() const noexcept { return pager_; }

  /// Writes every dirty block and waits until each is acknowledged.  Blocks that other threads
  /// write meanwhile may or may not be included.  Returns the first failure; what failed stays
  /// dirty, the rest is written all the same.
  failure writeback();
  /// The same for some blocks only, in ascending order, and for those that could not be written
  /// before.
  failure writeback(std::span<const block_range> which);
  std::uint64_t dirty_blocks() const;

  /// Forgets every block that is in memory, so that the next touch reads the store.  Returns false,
  /// and does nothing, where a block is dirty and `discard` is false, or where one is pinned.
  /// Loads in flight are dropped when they arrive.  The caller sees to it that no other thread
  /// touches the segment meanwhile; one that does reads either state, and what it pins or, without
  /// `discard`, modifies stays and is reported.
  enum class invalidated { done, dirty, pinned };
  invalidated invalidate(bool discard);
  /// The same for some blocks only (write notices), in ascending order; all or none.
  invalidated invalidate(std::span<const block_range> which, bool discard);

  /// Those of `which` that were written to since they were last asked for, also those that have left
  /// memory since: ascending, merged.  Those that are dirty now stay on record for the next call.
  std::vector<block_range> take_written(std::span<const block_range> which);
  /// The blocks that were brought in by a read since the last call, not within exact_access().
  std::vector<block_range> take_read();
  /// Puts blocks back on the record of those written to.
  void note_written(std::span<const block_range> which);

  /// Starts reading the blocks that are not in memory, as far as frames are to be had without
  /// waiting, in the order given.
  void prefetch(std::span<const block_range> which);
  /// The same for the last of these blocks, no more than may be read ahead of a sweep, and none where
  /// the program has turned that off.
  void fetch_before_sweep(std::span<const block_range> which);
  void advise(access_pattern pattern);
  /// How far sweeps are read ahead, where runtime_options::read_ahead does not say; 0: as far as is good for
  /// a program of which nothing else is known.
  void set_read_ahead(std::uint64_t bytes);
  /// Before a read in an exact_access(): sees to it that this thread is the one that serves it.
  void serve_read_of(const std::byte* element);

  /// Loads the blocks and keeps them mapped, readable or writable, until unpin() with the same
  /// arguments: all or nothing.  A block pinned for writing counts as dirty at once, stays so
  /// until the unpin, and is flushed through a copy.  A block that other processes may write to as
  /// well counts twice, with its twin.  Returns errc::budget_too_small where the pins of all segments
  /// together would leave less of the budget, or of max_resident, than one instruction can need
  /// (frame_needs.hpp), or the failure of a load.
  failure pin(std::span<const block_range> which, access_mode mode);
  void unpin(std::span<const block_range> which, access_mode mode) noexcept;

  /// Marks blocks whose promised part (known to the source) the program will overwrite before it
  /// reads it: the next load of such a block for a write fault reads only what lies outside.  The
  /// first write fault uses the mark up; a read fault loads everything.  Blocks that are writable
  /// already, or on their way, are not marked; what of them is in memory in grains is written first, and a
  /// failure of that is thrown; those that came in without the part promised before
  /// are dropped, as the new part may be another.  A shared segment is not marked.
  void promise(std::span<const block_range> which);
  /// Takes back every mark that was not used, and drops what was loaded under one.
  void clear_promises();
  /// The same for some blocks only, in ascending order.
  void clear_promises(std::span<const block_range> which);

  /// Adds blocks at the end, up to max_blocks.  `bytes` as in segment_options; the caller
  /// has invalidated the block that was the last.
  void grow(std::uint64_t blocks, std::uint64_t bytes = 0);
  /// Drops blocks at the end, dirty or not; the caller excludes other threads, and has
  /// invalidated the block that is then the last.
  void shrink(std::uint64_t blocks, std::uint64_t bytes = 0);
  /// No block may be dirty; the caller excludes other threads.
  void set_part(const segment_part& part);

 private:
  friend class segment_unit;
  friend failure bring_in(segment& s, std::span<const block_range> which, access_mode mode);
  void add_grains();
  block_index edge(std::uint64_t blocks, std::uint64_t bytes) const noexcept;
  void clear_edge(block_index first);

  pager& pager_;
  std::unique_ptr<segment_state> state_;
  std::unique_ptr<segment_state> grains_;
};

/// Returns when the blocks are in memory, or with the failure of a load, which of a touch would end the process.
/// Nothing keeps them there: it is for touches that follow at once.  For writing as for a touch: of a block that is
/// promised only what lies outside is loaded.
[[nodiscard]] failure bring_in(segment& s, std::span<const block_range> which, access_mode mode);
/// The same for the blocks of these bytes.
[[nodiscard]] failure bring_in(segment& s, const std::byte* first, std::size_t bytes, access_mode mode);

}  // namespace ooc::detail
