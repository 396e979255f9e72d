// An array and the ranks that share it: what opening, sync() and the other collectives have in
// common.
//
// The array of this process is a local_array.  Here is what it means for it that others write to it
// too: the group, the part of each rank, what the checking mode notes.  What the ranks do together
// is beside it: shared_opening, write_exchange (sync), array_collective.hpp (transfers),
// array_resize.hpp.
//
// Blocks have twins, so that each rank sends only what it has changed.  With owner_computes, blocks within the
// rank's part have none: they are written whole, and may be promised.  Blocks outside it are never made writable,
// so a write to them is a fault.  Where two parts share a block, a store of it fails if elements outside the part
// differ from the twin.  Read-ahead that begins in a rank's part, or in the rows beside it, ends there.
//
// An array without a group is that of a group of one rank, which waits for nobody.
//
// Owner: an array_core.  Invariants: once it is open, all ranks have the same geometry, so that a
// block's number means the same on each of them; the log exists where the checking mode is on and
// there are several ranks, and outlives the array that notes into it.
//
// Threads: as array_core.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/detail/array_core.hpp"
#include "oocarray/process_group.hpp"
#include "runtime/array/local_array.hpp"

namespace ooc::detail {

class access_log;

class shared_array {
 public:
  /// Opens nothing yet; that is shared_opening's.
  shared_array(const ooc::store& s, std::string_view path, const array_request& r);
  ~shared_array();
  shared_array(const shared_array&) = delete;
  shared_array& operator=(const shared_array&) = delete;

  local_array& local() noexcept { return local_; }
  const local_array& local() const noexcept { return local_; }
  detail::segment& segment() const noexcept { return local_.segment(); }
  detail::pager& pager() const noexcept { return segment().served_by(); }
  const std::string& path() const noexcept { return local_.facts().path; }
  /// Until resize() changes it.
  const array_geometry& geometry() const { return local_.source().current()->geometry; }

  process_group& group() const noexcept { return *group_; }  ///< of one rank, where none was given
  bool grouped() const noexcept { return grouped_; }         ///< options.group was given
  int rank() const noexcept { return group_->rank(); }
  int ranks() const noexcept { return group_->size(); }
  bool owner_computes() const noexcept { return owner_computes_; }
  /// Processes outside of the group may write to it too: options.shared.
  bool written_by_strangers() const noexcept { return shared_; }
  /// Forgets blocks that others have written, and those that it could not forget before.  Throws usage_error
  /// (errc::busy) where another thread has written to one or pinned it during `call`: then all are forgotten later.
  void forget(const std::vector<block_range>& written, const std::string& call);
  /// And those that forget() could not forget, which must be clean to be forgotten at last: ascending, merged.
  std::vector<block_range> with_owed(std::span<const block_range> which) const;
  /// Everything has been forgotten.
  void owe_nothing() noexcept { owed_.clear(); }
  /// Where the checking mode is on; else nullptr.
  access_log* log() const noexcept { return log_.get(); }

  /// As in array_ranks.
  std::pair<std::size_t, std::size_t> rows_of(int rank) const;
  /// The elements that this rank may write to, and what that means for blocks.
  array_sharing sharing(const array_geometry& g, const striping& s) const;
  /// As in array_core; with owner_computes within the own part only.
  pinned_region pin(box_view b, access_mode mode);
  void write(box_view b, const std::byte* from);
  /// An element is read through at(), in the checking mode.
  void note_read(const std::byte* element, std::size_t bytes);

 private:
  void check_in_part(box_view b, const char* operation, const char* to_be) const;

  std::shared_ptr<process_group> group_;
  bool grouped_;
  bool owner_computes_;
  bool shared_;  ///< options.shared
  std::unique_ptr<access_log> log_;
  local_array local_;
  std::vector<block_range> owed_;
};

}  // namespace ooc::detail
