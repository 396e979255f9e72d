// What the ranks of a group add to an array of one process: opening it together, parts, sync() and
// sync_halo() with their write notices, the checking mode, collective transfers, resizing together.
//
// An array without a group is that of a group of one rank, which waits for nobody; sync() and
// close() are then those of one process.
//
// Owner: an array_core.  Invariants: all ranks have the same geometry, so that a block's number
// means the same on each of them; the log exists where the checking mode is on and there are
// several ranks, and outlives the array that notes into it.  What one rank throws in a collective,
// all throw.
//
// Threads: as array_core; of the collectives (sync, sync_halo, read_all, write_all, resize, close)
// one at a time in each process, with no other use of the array meanwhile.
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
  /// Makes or opens it; collective over options.group.
  shared_array(runtime& rt, const ooc::store& s, std::string_view path, const array_request& r);
  ~shared_array();

  local_array& local() noexcept { return local_; }
  int rank() const noexcept { return group_->rank(); }
  int ranks() const noexcept { return group_->size(); }
  process_group& group() const noexcept { return *group_; }
  /// Other processes may write to it too.
  bool written_by_others() const noexcept { return shared_ || ranks() > 1; }
  /// The checking mode is on: reads through at() go to note_read().
  bool notes_reads() const noexcept { return log_ != nullptr; }

  // As in array_core.
  std::pair<std::size_t, std::size_t> rows_of(int rank) const;
  void sync(durability d);
  void sync_halo(std::size_t rows);
  /// Reads to or writes from `memory`, which has room for as many elements.
  void transfer_all(access_kind kind, box_view b, std::byte* memory, std::size_t elements);
  void gather(const element_indices& from, std::byte* to, std::size_t elements);
  void scatter(const element_indices& to, const std::byte* from, std::size_t elements);
  void accumulate(const element_indices& to, const std::byte* from, std::size_t elements,
                  const element_operation& op);
  void note_read(const std::byte* element, std::size_t bytes);
  pinned_region pin(box_view b, access_mode mode);
  void resize(std::size_t first_extent);
  void set_in_progress(std::string_view what);
  void close();

 private:
  using notices = std::vector<process_group::bytes>;  ///< one from each rank

  const std::string& path() const noexcept { return local_.facts().path; }
  detail::segment& segment() const noexcept { return local_.segment(); }
  /// Until resize() changes it.
  const array_geometry& geometry() const { return local_.source().current()->geometry; }

  [[noreturn]] void refuse(const char* why) const;  ///< errc::invalid_request
  void create_or_open(runtime& rt, const array_request& r);
  bool is_there() const;
  void open(runtime& rt, const array_request& r);
  void check_placement(const array_request& r) const;
  void open_together(runtime& rt, const array_request& r);
  array_sharing sharing(const array_geometry& g, const striping& s) const;
  void check_in_part(const index_box& box) const;
  void check_elements(const element_indices& list, std::size_t elements, const char* call) const;
  void check_in_part(const element_indices& list, const char* call) const;
  std::vector<block_range> halo_blocks(std::size_t rows) const;
  notices exchange_writes(const std::string& call, std::span<const block_range> which);
  void take_in(const std::string& call, const notices& told);
  void forget_others_writes(const std::string& call, const notices& told);
  void check_last_epoch();
  void report_conflicts(const notices& told) const;
  void check_resizable(std::size_t first_extent) const;
  void resize_file(const std::string& call, const array_geometry& now, bool grows);

  std::shared_ptr<process_group> group_;
  bool grouped_;  ///< options.group was given
  bool owner_computes_;
  bool shared_;   ///< options.shared
  std::unique_ptr<access_log> log_;
  local_array local_;
};

}  // namespace ooc::detail
