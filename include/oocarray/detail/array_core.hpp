// The untyped core of an ooc_array: a file of a store, its geometry, and a segment of addresses.
//
// Compiled once; ooc_array adds types and index arithmetic.  Boxes and shapes are spans of `rank`
// numbers, slowest dimension first, in elements.
//
// Threads: all functions may be called from any thread, except resize() and close(), during which
// no other thread may use the array.  Everything throws ooc::error with the array's path in what().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/access.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/request.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc::detail {

class access_log;
class array_geometry;
class array_source;
class file_claim;
class segment;
struct array_entry;
struct array_plan;
struct block_range;
struct index_box;
struct segment_part;

enum class memory_layout : std::uint8_t { right, tiled };

/// What a typed array asks of the core.
struct array_request {
  enum class how : std::uint8_t { create, create_or_open, open, open_read_only };

  how action = how::open;
  memory_layout layout = memory_layout::right;
  std::string element_type;
  std::uint32_t element_size = 0;
  std::size_t rank = 0;
  std::vector<std::uint64_t> extents;  ///< empty: those recorded with the file
  std::vector<std::byte> fill;         ///< one element; empty: zeros
  array_options<std::byte> options;    ///< all but `fill`
};

/// A box of elements as two spans of `rank` numbers.
struct box_view {
  std::span<const std::size_t> lower;
  std::span<const std::size_t> upper;
};

/// Contiguous bytes of the array's memory.
struct byte_span {
  std::byte* data;
  std::size_t bytes;
};

/// A pinned region: the blocks, for unpin(), and its rows.
struct pinned_region {
  std::vector<block_range> blocks;
  access_mode mode = access_mode::read;
  std::vector<byte_span> rows;

  pinned_region();
  ~pinned_region();
  pinned_region(pinned_region&&) noexcept;
  pinned_region& operator=(pinned_region&&) noexcept;
};

class array_core {
 public:
  array_core(runtime& rt, const store& s, std::string_view path, const array_request& r);
  /// Writes back; what cannot be written is reported on stderr.
  ~array_core();
  array_core(const array_core&) = delete;
  array_core& operator=(const array_core&) = delete;

  const std::string& path() const noexcept { return path_; }
  bool writable() const noexcept { return writable_; }
  bool is_open() const noexcept { return segment_ != nullptr; }

  /// First byte of the address range; nullptr once closed.
  std::byte* base() const noexcept;
  std::span<const std::uint64_t> extents() const noexcept;
  /// Shape of a tile in memory; empty with layout_right.
  std::span<const std::uint64_t> tile() const noexcept;
  std::size_t max_extent() const noexcept;
  std::uint64_t block_bytes() const noexcept;
  striping stripes() const;
  ooc::buffering buffers() const noexcept;

  /// Rows [first, second) of a rank's part; all rows without a group.  Throws usage_error
  /// (errc::invalid_request) for a rank that the group does not have.
  std::pair<std::size_t, std::size_t> rows_of(int rank) const;
  int rank() const noexcept { return group_ ? group_->rank() : 0; }
  int ranks() const noexcept { return group_ ? group_->size() : 1; }

  void writeback(durability d);
  void sync(durability d);
  void sync_halo(std::size_t rows);
  /// The elements of the box, row-major and packed; `elements` is the room in memory.
  void read_all(box_view b, std::byte* to, std::size_t elements) const;
  void write_all(box_view b, const std::byte* from, std::size_t elements);
  /// An element is about to be accessed through at().
  void note_at(const std::byte* element, std::size_t bytes) const {
    if (log_) note_read(element, bytes);
  }
  std::uint64_t dirty_blocks() const;
  void invalidate(bool discard);
  void prefetch(box_view b) const;
  /// The same, except blocks that an overwrite() covers: for tiles() that go through a target.
  void prefetch_ahead(box_view b) const;
  void advise(access_pattern p) const;
  void overwrite(box_view b);
  void clear_overwrite();
  pinned_region pin(box_view b, access_mode mode) const;
  void unpin(const pinned_region& r) const noexcept;
  void resize(std::size_t first_extent);
  void close();

  /// Throws std::out_of_range for an index, naming array, dimension and extent.
  [[noreturn]] void out_of_range(std::size_t dimension, std::size_t given) const;
  /// Throws usage_error (errc::closed).
  void check_open() const;
  /// The same, and (errc::invalid_request) for an array that is read-only, which "cannot
  /// <operation>".
  void check_writable(const char* operation) const;

  /// For the library's own layers.
  detail::segment& segment() const noexcept { return *segment_; }
  array_source& source() const noexcept { return *source_; }

 private:
  void make(runtime& rt, const array_request& r);
  void open_existing(runtime& rt, const array_request& r);
  void come_together(runtime& rt, const array_request& r);
  void begin(runtime& rt, const array_request& r);
  bool is_there() const;
  void check_placement(const array_request& r) const;
  segment_part limit_to_part(const array_geometry& g, const striping& s);
  void check_unpinned(const char* operation) const;
  void make_data_durable();
  void check_in_part(const index_box& box) const;
  void note_read(const std::byte* element, std::size_t bytes) const;
  std::vector<block_range> halo_blocks(std::size_t rows) const;
  std::vector<std::vector<std::byte>> exchange_writes(const std::string& call,
                                                      std::span<const block_range> which);
  void take_in(const std::string& call, const std::vector<std::vector<std::byte>>& notices);
  void forget_others_writes(const std::string& call,
                            const std::vector<std::vector<std::byte>>& notices);
  void check_last_epoch();
  void report_conflicts(const std::vector<std::vector<std::byte>>& notices) const;
  void transfer_all(access_kind kind, box_view b, std::byte* memory, std::size_t elements) const;
  index_box checked(box_view b, const char* operation) const;
  void set_up(runtime& rt, const array_request& r, const array_plan& plan);
  void write_back_or_report() noexcept;
  void end_with_runtime() noexcept;
  void let_go(bool with_runtime) noexcept;
  void make_file(const array_request& r, const array_plan& plan);
  void check_resizable(std::size_t first_extent) const;
  void resize_file(process_group& group, const std::string& call, const array_geometry& now,
                   bool grows);
  void fill_padding();

  std::string path_;
  bool writable_;
  store store_;
  std::unique_ptr<array_entry> entry_;
  std::unique_ptr<file_claim> claim_;
  std::shared_ptr<process_group> group_;  ///< empty: this process alone
  bool owner_computes_ = false;
  std::unique_ptr<access_log> log_;  ///< with check_conflicts
  std::unique_ptr<array_source> source_;
  std::unique_ptr<detail::segment> segment_;  ///< empty: closed
  std::unique_ptr<detail::segment> closed_;   ///< what it was: late touches are named
  std::uint64_t buffers_ = 0;
  mutable std::atomic<std::uint64_t> pins_{0};
};

}  // namespace ooc::detail
