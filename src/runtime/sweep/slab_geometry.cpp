#include "runtime/sweep/slab_geometry.hpp"

#include <algorithm>
#include <cstring>

namespace ooc::detail {

slab_geometry::slab_geometry(std::span<const std::uint64_t> extents, std::span<const std::size_t> radius,
                             std::span<const boundary> boundaries, std::size_t piece)
    : rank_(extents.size()), dimensions_(std::max<std::size_t>(rank_, 2)) {
  extents_[1] = 1;
  for (std::size_t k = 0; k < rank_; ++k) {
    extents_[k] = extents[k];
    radius_[k] = radius[k];
    periodic_[k] = boundaries[k] == boundary::periodic;
  }
  for (std::size_t k = dimensions_; k-- > 1;) {
    const std::size_t pad = periodic_[k] ? radius_[k] : 0;
    padded_ = padded_ || pad != 0;
    array_strides_[k] = static_cast<std::ptrdiff_t>(slab_elements_);
    ring_strides_[k] = static_cast<std::ptrdiff_t>(ring_elements_);
    ring_origin_ += pad * ring_elements_;
    slab_elements_ *= extents_[k];
    ring_elements_ *= extents_[k] + 2 * pad;
  }
  const std::size_t row = slab_elements_ / extents_[1];
  piece_rows_ = std::clamp<std::size_t>(piece / row, 1, extents_[1]);
  pieces_ = (extents_[1] + piece_rows_ - 1) / piece_rows_;
}

void slab_geometry::clip(position& lower, position& upper) const noexcept {
  for (std::size_t k = 1; k < dimensions_; ++k) {
    if (periodic_[k]) continue;
    const auto r = static_cast<std::ptrdiff_t>(radius_[k]);
    lower[k] = std::max(lower[k], r);
    upper[k] = std::max(lower[k], std::min(upper[k], static_cast<std::ptrdiff_t>(extents_[k]) - r));
  }
}

void slab_geometry::copy_box(const position& lower, const position& upper, std::byte* to, const position& to_strides,
                             const std::byte* from, const position& from_strides, std::size_t element) const noexcept {
  for (std::size_t k = 1; k < dimensions_; ++k)
    if (lower[k] >= upper[k]) return;
  const auto size = static_cast<std::ptrdiff_t>(element);
  // As many of the last dimensions as are contiguous on both sides are one run.
  std::size_t last = dimensions_ - 1;
  std::ptrdiff_t run = upper[last] - lower[last];
  while (last > 1 && run == to_strides[last - 1] && run == from_strides[last - 1]) {
    --last;
    run *= upper[last] - lower[last];
  }
  position at = lower;
  for (;;) {
    std::ptrdiff_t t = 0, f = 0;
    for (std::size_t k = 1; k < dimensions_; ++k) {
      t += at[k] * to_strides[k];
      f += at[k] * from_strides[k];
    }
    std::memcpy(to + t * size, from + f * size, static_cast<std::size_t>(run * size));
    std::size_t k = last;
    while (--k > 0) {
      if (++at[k] < upper[k]) break;
      at[k] = lower[k];
    }
    if (k == 0) return;
  }
}

void slab_geometry::copy_edges(const position& lower, const position& upper, std::byte* to, const position& to_strides,
                               const std::byte* from, const position& from_strides,
                               std::size_t element) const noexcept {
  for (std::size_t k = 1; k < dimensions_; ++k) {
    if (periodic_[k] || radius_[k] == 0) continue;
    const auto extent = static_cast<std::ptrdiff_t>(extents_[k]);
    const auto r = std::min(static_cast<std::ptrdiff_t>(radius_[k]), extent);
    position low_end = upper, high_begin = lower;
    low_end[k] = std::min(upper[k], r);
    high_begin[k] = std::max({lower[k], r, extent - r});
    copy_box(lower, low_end, to, to_strides, from, from_strides, element);
    copy_box(high_begin, upper, to, to_strides, from, from_strides, element);
  }
}

void slab_geometry::fill_pads(std::size_t dimension, std::ptrdiff_t first, std::ptrdiff_t last, std::byte* slab,
                              std::size_t element) const noexcept {
  position lower{}, upper{};
  for (std::size_t k = 2; k < dimensions_; ++k) upper[k] = static_cast<std::ptrdiff_t>(extents_[k]);
  lower[1] = first;
  upper[1] = last;
  // The last dimension first: what a dimension copies then has the pads of those after it.
  const auto size = static_cast<std::ptrdiff_t>(element);
  for (std::size_t k = dimensions_; k-- > dimension;) {
    if (!periodic_[k] || radius_[k] == 0) continue;
    const auto extent = static_cast<std::ptrdiff_t>(extents_[k]);
    const auto pad = static_cast<std::ptrdiff_t>(radius_[k]);
    for (std::ptrdiff_t i = -pad; i < extent + pad; ++i) {
      if (i == 0) i = extent;
      const std::ptrdiff_t source = (i % extent + extent) % extent;
      position from_lower = lower, from_upper = upper;
      from_lower[k] = source;
      from_upper[k] = source + 1;
      const std::ptrdiff_t shift = (i - source) * ring_strides_[k] * size;
      copy_box(from_lower, from_upper, slab + shift, ring_strides_, slab, ring_strides_, element);
    }
    lower[k] = -pad;
    upper[k] = extent + pad;
  }
}

}  // namespace ooc::detail
