// The functions of an ooc_array that the templates call and that are compiled once: the array without its type.
//
// ooc_array adds types and index arithmetic; an element access does not come here.  The array
// itself stays behind the pointer.  Calls that concern all ranks of a group, elements by their indices,
// and attributes have small classes of their own, which refer to it.  Boxes and shapes are spans of
// as many numbers as the array has dimensions, slowest dimension first, in elements.
//
// Owner: one ooc_array, or whoever it was moved to.  Invariant: facts() are those of the array
// behind the pointer, and stay at one place in memory.
//
// Threads: all functions may be called from any thread; array_ranks.hpp has the exceptions.
// Everything throws ooc::error with the array's path in what().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/access.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/detail/array_attributes.hpp"
#include "oocarray/detail/array_ranks.hpp"
#include "oocarray/detail/array_request.hpp"
#include "oocarray/detail/indexed_elements.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc::detail {

class shared_array;
struct block_range;

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

/// The facts of an array that are known without asking anybody.  They change in resize() and when the
/// array closes.
struct array_facts {
  bool open = false;
  bool writable = false;
  std::string path;
  std::string element_type;
  std::uint32_t element_size = 0;
  std::byte* base = nullptr;  ///< first byte of the first element; nullptr once closed
  std::vector<std::uint64_t> extents;
  std::vector<std::uint64_t> tile;         ///< shape of a tile in memory; empty with layout_right
  std::vector<std::uint64_t> max_extents;  ///< in whose grid tiles are numbered
  std::uint64_t block_bytes = 0;
  ooc::buffering buffering;
  striping stripes;
};

/// The blocks of a box that prefetch() fetches.
enum class prefetched : std::uint8_t {
  all,
  not_promised,  ///< all but the blocks that an overwrite() covers: for tiles() of a target
};

/// The blocks that overwrite() promises.
enum class promised_blocks : std::uint8_t {
  touched,
  covered,  ///< those of which all elements are in the box: a failure in between leaves zeros nowhere else
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

  array_attributes attributes() const noexcept { return array_attributes(*array_); }
  indexed_elements elements() const noexcept { return indexed_elements(*array_); }
  array_ranks ranks() const noexcept { return array_ranks(*array_); }
  /// For the library's algorithms (src/runtime/algorithm).
  shared_array& shared() const noexcept { return *array_; }

  /// Shape of a tile in memory; with memory_layout::right whole rows, as many as fit into a block.
  std::vector<std::size_t> tile_shape() const;
  std::string current_path() const;
  std::optional<commit_info> last_commit() const;
  /// Whether array_base::roll_back() leaves them as they are; of this process alone.
  bool has_committed_extents() const;
  void writeback(durability d);
  std::uint64_t dirty_blocks() const;
  void invalidate(bool discard);
  void prefetch(box_view b, prefetched which = prefetched::all) const;
  void prefetch(std::span<const box_view> boxes) const;
  void advise(access_pattern p) const;
  void overwrite(box_view b, promised_blocks which = promised_blocks::touched);
  void clear_overwrite();
  pinned_region pin(box_view b, access_mode mode) const;
  void unpin(const pinned_region& r) const noexcept;
  /// Brings a box in for touches that follow at once; throws where it cannot be read, which would end the process if a
  /// touch met it.
  void bring_in(box_view b, access_mode mode) const;
  /// Sets the elements of a box, block after block, from as many that lie row-major and packed in memory.  Where a
  /// block cannot be brought in, those before it have their new elements, and all others of the box the old ones; also
  /// where the box is part of a larger one that is promised, `covered`.
  void write(box_view b, const std::byte* from);

 private:
  void refuse_closed() const;
  void note_read(const std::byte* element, std::size_t bytes) const;

  std::unique_ptr<shared_array> array_;
  const array_facts* facts_;  ///< of array_
  bool reads_noted_;          ///< options.checking
};

}  // namespace ooc::detail
