// The members that every array has, whatever its elements and its rank: where it is, what of it is modified,
// how it is written back and shared with other ranks, its attributes.
//
// ooc_array<T, N> and any_array derive from it, so a function that writes back whatever arrays a
// program has takes an array_base&.  What ooc_array.hpp says of memory, errors, threads and
// durability holds here.
//
// Movable with the array that derives from it.  Calls throw usage_error (errc::closed) for an array
// that has been closed or moved from, or was made without a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "oocarray/access.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/detail/array_core.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc {

class array_base {
 public:
  // --- The store

  /// Returns when every modified block has been acknowledged by its I/O nodes, or, with
  /// ooc::durable, is on stable storage.  Throws io_error naming array, block, node and cause; what
  /// failed stays modified, the rest is written all the same, and a later call tries again.
  void writeback(durability d = durability::acknowledged) { core().writeback(d); }

  /// Makes the writes of all ranks visible to all ranks.  Collective over options.group.  Every
  /// rank writes its modified blocks back, and then drops from its memory exactly those blocks that
  /// another rank has written to since the last sync().  All other blocks stay in memory.
  ///
  /// With ooc::durable, the writes of all ranks are on stable storage as well.  Each node is asked
  /// once, for all ranks, and must have finished within the group's deadline.  If that fails, all
  /// ranks see the writes nevertheless, but a loss of power may lose them, and they must be written
  /// again (see file.hpp).  If the ranks conflict (options.checking), nothing is made durable.
  ///
  /// Throws the same on all ranks: what writeback() throws; usage_error (errc::busy) while a region
  /// is pinned, (errc::conflict) with options.checking, (errc::not_together) if a rank makes
  /// another call; io_error (ETIMEDOUT, ECONNABORTED) if a rank does not make the call.  After a
  /// failure the other ranks may not know yet what this rank has written; the next sync() that
  /// succeeds tells them.  No other thread may use the array meanwhile: where one pins or writes a
  /// block that another rank has written, this rank alone throws usage_error (errc::busy), unless
  /// the call is durable.  The others have ended the call, so it must not be repeated on this rank
  /// alone; elements of such blocks may be read here as they were before until the next sync() of
  /// all ranks.  Without a group the call is writeback(d).
  void sync(durability d = durability::acknowledged) { core().ranks().sync(d); }

  /// For stencils: does what sync() does, but only for the blocks that hold rows (indices of the
  /// first dimension) within `rows` of a border between two parts.  Collective over options.group;
  /// all ranks pass the same `rows`.  Afterwards every rank sees what all ranks have written to
  /// these blocks.  Other modified blocks stay in memory while there is room, so an array that fits
  /// in memory is not written in every iteration; other ranks may count on their contents only
  /// after the next sync().  The call also begins to load the rows before the rank's own, because a
  /// sweep begins with them, as far as read-ahead goes.  Throws what sync() throws.  Without a
  /// group there are no borders, and nothing is done.
  void sync_halo(std::size_t rows = 1) { core().ranks().sync_halo(rows); }

  /// The rows of this rank's part: `const auto [first, last] = a.local_rows();` for rows first <= i
  /// < last; ooc_array::local_box() says which they are.
  std::pair<std::size_t, std::size_t> local_rows() const {
    const detail::array_ranks all = core().ranks();
    return all.rows_of(all.rank());
  }

  /// Drops all blocks from memory.  The next touch reads the store, and so sees what another
  /// process has written back.  Throws usage_error (errc::dirty) if a block is modified, so that
  /// nothing is lost, and (errc::busy) while a region is pinned.  No other thread may touch the
  /// array meanwhile.
  void invalidate() { core().invalidate(false); }
  /// The same, and modified blocks are lost.
  void invalidate(discard_t) { core().invalidate(true); }

  /// Says how the program will go through the array; only speed depends on it.
  void advise(access_pattern p) const { core().advise(p); }
  /// Takes back the promises of overwrite() that were not used.
  void clear_overwrite() { core().clear_overwrite(); }

  /// Writes back and releases the file and the addresses.  Collective over options.group.
  /// Afterwards an element access ends the process with a message, and calls throw usage_error
  /// (errc::closed).  Throws what writeback() throws, usage_error (errc::busy) while a region is
  /// pinned and, with options.checking, (errc::conflict) for what happened since the last sync().
  /// The array then stays open.  After a conflict everything has been written back, and another
  /// close() by all ranks succeeds.  Closing an array twice does nothing.  A destructor does not
  /// wait for other ranks, and so reports no conflicts.
  void close() { core().ranks().close(); }

  /// Says that the elements of a file that was opened with options.unfinished are whole again,
  /// durably: it opens as any other from then on.  Write back before.  Collective over
  /// options.group.
  void set_finished() { core().ranks().set_in_progress({}); }

  // --- Attributes: names and values that programs keep with the file, as those of ooc::store are.
  // Any rank may set them, and everybody sees them when the call returns.  Setting one throws
  // usage_error (errc::invalid_request) where the array is read-only.

  std::map<std::string, std::string> attributes() const { return core().attributes().all(); }
  void set_attribute(std::string_view key, std::string_view value) { core().attributes().set(key, value); }
  void remove_attribute(std::string_view key) { core().attributes().remove(key); }

  /// The commit that the array was opened at or has made since; empty: it was made without options.commits.
  std::optional<commit_info> last_commit() const { return core().last_commit(); }

  // --- Facts

  /// Its path in the store when it was opened.
  const std::string& path() const { return core().facts().path; }
  /// Its path now, wherever it has been renamed to: asks the store.  Throws usage_error (ENOENT) where it was removed.
  std::string current_path() const { return core().current_path(); }
  bool is_open() const noexcept { return core_ && core_->facts().open; }
  bool writable() const { return core().facts().writable; }
  /// Blocks that are modified and not yet acknowledged.
  std::uint64_t dirty_blocks() const { return core().dirty_blocks(); }
  /// Bytes in a block.
  std::uint64_t block_bytes() const { return core().facts().block_bytes; }
  /// The limits of resize().
  std::vector<std::size_t> max_extents() const {
    return {core().facts().max_extents.begin(), core().facts().max_extents.end()};
  }
  [[deprecated("max_extents() has those of all dimensions")]] std::size_t max_extent() const {
    return max_extents().front();
  }
  /// The buffering that resulted from options.buffers and elements_per_buffer.
  buffering buffers() const { return core().facts().buffering; }
  /// How the file is dealt out over the I/O nodes.
  striping stripes() const { return core().facts().stripes; }

  /// For the library's own layers.
  detail::array_core& core() { return held(); }
  const detail::array_core& core() const { return held(); }

 protected:
  /// Without a file, as after a move.
  array_base() noexcept = default;
  array_base(runtime& rt, const store& s, std::string_view path, const detail::array_request& r)
      : core_(std::make_unique<detail::array_core>(rt, s, path, r)) {}
  array_base(array_base&&) noexcept = default;
  array_base& operator=(array_base&&) noexcept = default;
  ~array_base() = default;

 private:
  detail::array_core& held() const {
    if (!core_) throw usage_error(errc::closed, "this array has no file: it was made without one, or moved from");
    return *core_;
  }

  std::unique_ptr<detail::array_core> core_;
};

}  // namespace ooc
