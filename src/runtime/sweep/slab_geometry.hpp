// The shape of a slab in an array and in a ring: arithmetic, and copies of parts of slabs.
//
// In a ring the slab of a dimension that is periodic has `radius` more elements on either side, so
// that a kernel finds its neighbours at -1 and at the extent.
//
// An array of one dimension is one of two, of which the second has the extent 1: a run of its elements is copied as
// as many rows of one slab.
//
// A plain value; thread-safe.  Positions count elements from (0, 0, ...) of the slab and may be
// negative in a ring.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "oocarray/detail/sweep_engine.hpp"

namespace ooc::detail {

/// Whole lines of the processor's cache.
constexpr std::size_t in_whole_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

/// From slab to slab of a ring, whose slabs have so many bytes.  Slabs begin at different places of a page, so that
/// what is read and what is written do not meet in the same sets of the cache.
constexpr std::size_t ring_pitch(std::size_t bytes) noexcept { return in_whole_lines(bytes) + 5 * 64; }

class slab_geometry {
 public:
  static constexpr std::size_t most_dimensions = 8;
  using shape = std::array<std::size_t, most_dimensions>;
  using position = std::array<std::ptrdiff_t, most_dimensions>;

  /// `piece`: about how many elements a piece of a slab has.
  slab_geometry(std::span<const std::uint64_t> extents, std::span<const std::size_t> radius,
                std::span<const boundary> boundaries, std::size_t piece);

  std::size_t rank() const noexcept { return rank_; }
  std::size_t slabs() const noexcept { return extents_[0]; }
  std::size_t radius() const noexcept { return radius_[0]; }
  bool periodic() const noexcept { return periodic_[0]; }
  const shape& extents() const noexcept { return extents_; }
  bool padded() const noexcept { return padded_; }
  /// Elements of a slab in the array, and in a ring.
  std::size_t slab_elements() const noexcept { return slab_elements_; }
  std::size_t ring_elements() const noexcept { return ring_elements_; }
  /// Of element (0, 0, ...) in a slab of a ring.
  std::size_t ring_origin() const noexcept { return ring_origin_; }
  const position& array_strides() const noexcept { return array_strides_; }
  const position& ring_strides() const noexcept { return ring_strides_; }

  /// Elements of a row, which is what one index of dimension 1 holds, in the array and in a ring, and where
  /// the first of them is in a row of a ring.
  std::size_t row_elements() const noexcept { return static_cast<std::size_t>(array_strides_[1]); }
  std::size_t ring_row_elements() const noexcept { return static_cast<std::size_t>(ring_strides_[1]); }
  std::size_t ring_row_origin() const noexcept {
    return ring_origin_ - (periodic_[1] ? radius_[1] * ring_row_elements() : 0);
  }
  std::size_t radius(std::size_t k) const noexcept { return radius_[k]; }
  bool periodic(std::size_t k) const noexcept { return periodic_[k]; }

  /// Parts that threads compute: intervals of dimension 1.
  std::size_t pieces() const noexcept { return pieces_; }
  std::size_t piece_rows() const noexcept { return piece_rows_; }
  /// Of a box of a slab, what the kernel computes.
  void clip(position& lower, position& upper) const noexcept;

  /// Copies a box of a slab.
  void copy_box(const position& lower, const position& upper, std::byte* to, const position& to_strides,
                const std::byte* from, const position& from_strides, std::size_t element) const noexcept;
  /// Copies the part of a box that clip() leaves out.
  void copy_edges(const position& lower, const position& upper, std::byte* to, const position& to_strides,
                  const std::byte* from, const position& from_strides, std::size_t element) const noexcept;
  /// Fills what lies outside the extents in these rows of a ring's slab, in this dimension (1 where they are all rows)
  /// and those after it.  Rows lie one after the other wherever the slab begins and ends.
  void fill_pads(std::size_t dimension, std::ptrdiff_t first, std::ptrdiff_t last, std::byte* slab,
                 std::size_t element) const noexcept;

 private:
  std::size_t rank_;
  std::size_t dimensions_;  ///< at least 2
  shape extents_{};
  shape radius_{};
  std::array<bool, most_dimensions> periodic_{};
  bool padded_ = false;
  std::size_t slab_elements_ = 1;
  std::size_t ring_elements_ = 1;
  std::size_t ring_origin_ = 0;
  position array_strides_{};
  position ring_strides_{};
  std::size_t pieces_ = 1;
  std::size_t piece_rows_ = 0;
};

}  // namespace ooc::detail
