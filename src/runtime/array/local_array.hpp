// An array of one process: its file, the segment of addresses that its elements have, and their
// life until the array closes or the runtime ends.
//
// Nothing here waits for another process.  What the ranks of a group add is shared_array, which
// opens the file for them step by step (file(), set_up(), attach()), and says in an array_sharing
// what that means for the segment.
//
// Owner: a shared_array.  Invariants: facts().open is true from set_up() until close(), and the
// segment exists for as long; from attach() on, facts(), source() and file() are of one geometry;
// the claim to the file is held until close().  An open array that is destroyed writes back first,
// and so does the end of the runtime.
//
// Threads: as array_core; set_up(), attach() and close() exclude all others.  Everything throws
// ooc::error with the array's path in what().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "oocarray/detail/array_core.hpp"
#include "runtime/array/array_file.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/array/array_source.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "runtime/pager/segment.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::detail {

class access_log;

/// The effect of other ranks on the segment and its source; as it is: there are none.
struct array_sharing {
  bool by_ranks = false;          ///< others write to the blocks
  segment_part blocks = {};       ///< which blocks are whose
  std::optional<index_box> part;  ///< only these elements may be sent; empty: any
  access_log* log = nullptr;      ///< notes what is sent, and has the segment note what is read
};

class local_array {
 public:
  /// Opens nothing yet.
  local_array(const ooc::store& s, std::string_view path, const array_request& r);
  ~local_array();
  local_array(const local_array&) = delete;
  local_array& operator=(const local_array&) = delete;

  /// Makes or opens the file for this process alone.
  void open(runtime& rt, const array_request& r);
  /// Makes the segment: throws usage_error (errc::budget_too_small) where memory has no room for
  /// it.  Once more where the file that was to be made has turned out to be there.
  void set_up(runtime& rt, const array_request& r, const array_plan& plan, const array_sharing& with);
  /// The file is there, or has been resized: from now on blocks are read and written.
  void attach(const array_geometry& g);

  const array_facts& facts() const noexcept { return facts_; }
  array_file& file() noexcept { return file_; }
  const array_file& file() const noexcept { return file_; }
  array_source& source() const noexcept { return *source_; }
  /// While the array is open.
  detail::segment& segment() const noexcept { return *segment_; }

  void check_open() const;
  /// See array_core.
  void check_writable(const char* operation) const;
  /// Throws usage_error (errc::busy) where a region is pinned.
  void check_unpinned(const char* operation) const;
  /// The box, which lies within the extents; throws usage_error (errc::invalid_request) naming the
  /// operation.
  index_box checked(box_view b, const char* operation) const;

  void writeback(durability d);
  void invalidate(bool discard);
  void prefetch(box_view b, prefetched which);
  /// The blocks of the first box first.
  void prefetch(std::span<const box_view> boxes);
  void overwrite(box_view b, promised_blocks which = promised_blocks::touched);
  void clear_overwrite();
  /// Shape of a tile in the file; empty where it is row-major.
  std::span<const std::uint64_t> file_tile() const noexcept { return file_tile_; }
  pinned_region pin(box_view b, access_mode mode);
  void unpin(const pinned_region& r) noexcept;
  void bring_in(box_view b, access_mode mode);
  void write(box_view b, const std::byte* from);

  /// Whoever holds it is the only one who accumulates.
  ooc::mutex& accumulating() noexcept { return accumulating_; }

  /// Forgets all blocks, modified or not, and lets go of file and addresses.  `with_runtime`: which
  /// ends.
  void close(bool with_runtime = false) noexcept;

 private:
  void write_back_or_report() noexcept;

  array_facts facts_;
  std::vector<std::uint64_t> file_tile_;
  array_file file_;
  std::unique_ptr<array_source> source_;
  std::unique_ptr<array_source> grain_source_;  ///< the same in grains; empty where memory is in tiles
  std::unique_ptr<detail::segment> segment_;    ///< empty: closed
  std::unique_ptr<detail::segment> closed_;     ///< what it was: late touches are named
  std::atomic<std::uint64_t> pins_{0};
  ooc::mutex accumulating_;
};

}  // namespace ooc::detail
