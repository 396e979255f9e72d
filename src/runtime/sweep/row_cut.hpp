// How slabs that are too large for a sweep's rings are cut: parallelograms of the second dimension.
//
// A *row* is what one index of dimension 1 holds.  The rows are cut into *parts*, which a pass computes one
// after the other, each over all slabs.  Part q computes, of level L of k,
//
//     rows  q w + s - skew(L)  to  (q + 1) w + s - skew(L) - 1 ,
//
// cut off at the rows that the level has.  skew(L) = L r1, with the radius r1 of dimension 1, so what a part
// needs beyond its last row it has itself, one level below; and what it needs before its first row are the last
// border(L) rows that the part before has computed of level L, or has from the part before that.
// skew(k) is rounded up to a multiple of the *unit*, as are w and s: rows that are written begin and end there.
//
// Where dimension 1 is periodic, levels have (k - L) r1 rows more on either side, which are computed twice, and
// the first part begins before them: s = -k r1, rounded.  Elsewhere s = 0.
//
// Slabs that are whole are one part, without skew; where dimension 1 is periodic, their rings have copies of r1 rows at
// either end instead.
//
// A plain value; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/sweep/wave_schedule.hpp"

namespace ooc::detail {

class row_cut {
 public:
  /// `two_levels`: level L + 2 looks at its own rows of level L.
  row_cut(std::size_t rows, std::size_t radius, bool periodic, std::size_t levels, std::size_t width, std::size_t unit,
          bool two_levels) noexcept
      : rows_(rows),
        radius_(radius),
        periodic_(periodic),
        levels_(levels),
        width_(width),
        unit_(unit),
        two_levels_(two_levels),
        start_(periodic ? -signed_size(last_skew()) : 0),
        parts_((static_cast<std::size_t>(signed_size(rows_ + last_skew()) - start_) + width_ - 1) / width_) {}

  /// Whole slabs.
  explicit row_cut(const slab_geometry& g) noexcept : row_cut(g.extents()[1], 0, false, 0, g.extents()[1], 1, false) {
    pads_ = g.periodic(1) ? g.radius(1) : 0;
  }

  std::size_t parts() const noexcept { return parts_; }
  std::size_t width() const noexcept { return width_; }
  std::size_t array_rows() const noexcept { return rows_; }
  std::size_t radius() const noexcept { return radius_; }

  /// The rows that a part computes of a level (of level 0: reads).
  slab_range rows(std::size_t part, std::size_t level) const noexcept {
    const std::ptrdiff_t first = begin(part, level);
    return within({first, first + signed_size(width_)}, levels_ - level);
  }
  /// Rows of coefficients that any level of the part looks at.
  slab_range coefficient_rows(std::size_t part) const noexcept {
    return within({first_coefficient_row(part), begin(part, 0) + signed_size(width_)}, levels_);
  }

  /// Rows of level L < k that a part has from the one before: those before its own.
  std::size_t border(std::size_t level) const noexcept {
    const std::size_t of_next = skew(level + 1) - skew(level) + radius_;
    return two_levels_ && level + 2 <= levels_ ? std::max(of_next, skew(level + 2) - skew(level)) : of_next;
  }
  /// The first row for which the ring of a level has room, and of how many, whatever the levels below k.
  std::ptrdiff_t first_kept(std::size_t part, std::size_t level) const noexcept {
    return begin(part, level) - signed_size(border(level) + pads_);
  }
  std::size_t kept(std::size_t level) const noexcept { return width_ + most_border(level) + 2 * pads_; }
  std::size_t most_border(std::size_t level) const noexcept {
    return 2 * radius_ + (level + (two_levels_ ? 2 : 1) >= levels_ ? unit_ - 1 : 0);
  }
  /// The same of coefficients.
  std::ptrdiff_t first_coefficient_row(std::size_t part) const noexcept {
    return begin(part, levels_) - signed_size(radius_ + pads_);
  }
  std::size_t coefficient_rows_kept() const noexcept {
    return width_ + levels_ * radius_ + unit_ - 1 + radius_ + 2 * pads_;
  }
  /// Rows that a ring has before the first and after the last row of the array.
  std::size_t pads() const noexcept { return pads_; }

  /// Rows past the array's end, which are its first ones: how many of these are read so.
  std::size_t rows_read_again() const noexcept { return periodic_ ? std::min(levels_ * radius_, rows_) : 0; }

 private:
  std::size_t last_skew() const noexcept { return (levels_ * radius_ + unit_ - 1) / unit_ * unit_; }
  std::size_t skew(std::size_t level) const noexcept { return level == levels_ ? last_skew() : level * radius_; }
  std::ptrdiff_t begin(std::size_t part, std::size_t level) const noexcept {
    return signed_size(part * width_) + start_ - signed_size(skew(level));
  }
  slab_range within(slab_range r, std::size_t levels_above) const noexcept {
    const std::ptrdiff_t more = periodic_ ? signed_size(levels_above * radius_) : 0;
    return {std::max(r.first, -more), std::min(r.last, signed_size(rows_) + more)};
  }

  std::size_t rows_;
  std::size_t radius_;
  bool periodic_;
  std::size_t levels_;
  std::size_t width_;
  std::size_t unit_;
  bool two_levels_;
  std::ptrdiff_t start_;
  std::size_t parts_;
  std::size_t pads_ = 0;
};

}  // namespace ooc::detail
