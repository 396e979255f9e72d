// What the templates call of an ooc_array that is compiled once: the array without its type.
//
// ooc_array adds types and index arithmetic; an element access does not come here.  What an array
// of one process is, and what the ranks of a group add to it, stays behind the pointer.  Boxes and
// shapes are spans of as many numbers as the array has dimensions, slowest dimension first, in
// elements.
//
// Owner: one ooc_array, or whoever it was moved to.  Invariant: facts() are those of the array
// behind the pointer, and stay at one place in memory.
//
// Threads: all functions may be called from any thread, except resize() and close(), during which
// no other thread may use the array.  Everything throws ooc::error with the array's path in what().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/access.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc::detail {

class local_array;
class pager;
class shared_array;
struct block_range;

enum class memory_layout : std::uint8_t { right, tiled };

/// What a typed array asks of the core.
struct array_request {
  enum class how : std::uint8_t { create, create_or_open, open, open_read_only };

  how action = how::open;
  memory_layout layout = memory_layout::right;
  std::string element_type;  ///< empty: type and rank are those recorded with the file
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

/// Elements by their indices.
struct element_indices {
  const std::size_t* first;  ///< count * numbers of them
  std::size_t count;         ///< of indices
  std::size_t numbers;  ///< in an index: 1, the element's number in row-major order; or the rank
};

/// What accumulate() does to an element, given the value that the caller has for it.
struct element_operation {
  void (*apply)(void* context, std::byte* element, const std::byte* value);
  void* context;
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

/// What is known of an array without asking anybody.  It changes in resize() and when the array
/// closes.
struct array_facts {
  bool open = false;
  bool writable = false;
  std::string path;
  std::string element_type;
  std::uint32_t element_size = 0;
  std::byte* base = nullptr;  ///< first byte of the first element; nullptr once closed
  std::vector<std::uint64_t> extents;
  std::vector<std::uint64_t> tile;  ///< shape of a tile in memory; empty with layout_right
  std::size_t max_extent = 0;
  std::uint64_t block_bytes = 0;
  ooc::buffering buffering;
  striping stripes;
};

/// What prefetch() fetches of a box.
enum class prefetched : std::uint8_t {
  all,
  not_promised,  ///< all but the blocks that an overwrite() covers: for tiles() of a target
};

class array_core {
 public:
  array_core(runtime& rt, const store& s, std::string_view path, const array_request& r);
  /// Writes back; what cannot be written is reported on stderr.
  ~array_core();
  array_core(const array_core&) = delete;
  array_core& operator=(const array_core&) = delete;

  const array_facts& facts() const noexcept { return *facts_; }

  /// Throws usage_error (errc::closed).
  void check_open() const {
    if (!facts_->open) refuse_closed();
  }
  /// The same, and (errc::invalid_request) for an array that is read-only, which "cannot
  /// <operation>".
  void check_writable(const char* operation) const;
  /// Throws std::out_of_range for an index, naming array, dimension and extent.
  [[noreturn]] void out_of_range(std::size_t dimension, std::size_t given) const;
  /// An element is about to be accessed through at().
  void note_at(const std::byte* element, std::size_t bytes) const {
    if (reads_noted_) note_read(element, bytes);
  }

  int rank() const noexcept;
  /// Rows [first, second) of a rank's part; all rows without a group.  Throws usage_error
  /// (errc::invalid_request) for a rank that the group does not have.
  std::pair<std::size_t, std::size_t> rows_of(int rank) const;

  void writeback(durability d);
  void sync(durability d);
  void sync_halo(std::size_t rows);
  /// The elements of the box, row-major and packed; `elements` is the room in memory.
  void read_all(box_view b, std::byte* to, std::size_t elements) const;
  void write_all(box_view b, const std::byte* from, std::size_t elements);
  std::uint64_t dirty_blocks() const;
  void invalidate(bool discard);
  void prefetch(box_view b, prefetched which = prefetched::all) const;
  void prefetch(std::span<const box_view> boxes) const;
  /// `elements`: the room in memory, or the values there.
  void gather(const element_indices& from, std::byte* to, std::size_t elements) const;
  void scatter(const element_indices& to, const std::byte* from, std::size_t elements);
  void accumulate(const element_indices& to, const std::byte* from, std::size_t elements,
                  const element_operation& op);
  void advise(access_pattern p) const;
  void overwrite(box_view b);
  void clear_overwrite();
  pinned_region pin(box_view b, access_mode mode) const;
  void unpin(const pinned_region& r) const noexcept;
  void resize(std::size_t first_extent);
  void close();
  std::map<std::string, std::string> attributes() const;
  void set_attribute(std::string_view key, std::string_view value);
  void remove_attribute(std::string_view key);

  // --- for the library's algorithms (src/runtime/algorithm); the array is open
  detail::pager& pager() const noexcept;
  /// The file says so from then on, durably; empty: its elements are whole again.  Collective.
  void set_in_progress(std::string_view what);
  process_group& group() const noexcept;  ///< of one rank, where none was given
  /// Shape of a tile in the file; empty where it is row-major.
  std::vector<std::size_t> file_tile() const;
  local_array& local() const noexcept;
  bool written_by_others() const noexcept;  ///< options.shared, or a group of several ranks

 private:
  void refuse_closed() const;
  void note_read(const std::byte* element, std::size_t bytes) const;

  std::unique_ptr<shared_array> array_;
  const array_facts* facts_;  ///< of array_
  bool reads_noted_;          ///< options.checking
};

}  // namespace ooc::detail
