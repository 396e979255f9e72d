// The functions that the templates call and that concern all ranks of an array's group.  An array without
// a group is that of a group of one rank.
//
// Owner: made for one call by array_core::ranks(), and refers to the array.  Threads: rank() and
// rows_of() any; all else is collective, one call at a time in each process and with no other use
// of the array meanwhile.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "oocarray/access.hpp"

namespace ooc::detail {

class shared_array;

/// A box of elements as two spans of `rank` numbers.
struct box_view {
  std::span<const std::size_t> lower;
  std::span<const std::size_t> upper;
};

class array_ranks {
 public:
  explicit array_ranks(shared_array& array) noexcept : array_(array) {}

  int rank() const noexcept;
  /// Rows [first, second) of a rank's part; all rows without a group.  Throws usage_error
  /// (errc::invalid_request) for a rank that the group does not have.
  std::pair<std::size_t, std::size_t> rows_of(int rank) const;

  void sync(durability d) const;
  void sync_halo(std::size_t rows) const;
  /// The elements of the box, row-major and packed; `elements` is the room in memory.
  void read_all(box_view b, std::byte* to, std::size_t elements) const;
  void write_all(box_view b, const std::byte* from, std::size_t elements) const;
  /// `may_move`: elements may come to other addresses, which other extents than the first take in a row-major image.
  void resize(std::span<const std::size_t> extents, bool may_move) const;
  void resize_first(std::size_t extent) const;
  void roll_back() const;
  /// The file says so from then on, durably; empty: its elements are whole again.
  void set_in_progress(std::string_view what) const;
  void close() const;

 private:
  shared_array& array_;
};

}  // namespace ooc::detail
