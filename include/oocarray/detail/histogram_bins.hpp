// Bins of one width, as functions of elements; see histogram() in algorithm/elementwise.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "oocarray/error.hpp"

namespace ooc::detail {

/// The bin of an integer among `bins` of one width from lower up to upper; `bins` where it is in none.
template <std::integral T, std::integral Bound>
class integer_bins {
 public:
  integer_bins(Bound lower, Bound upper, std::size_t bins) : lower_(lower), upper_(upper), bins_(bins) {
    if (upper_ <= lower_) return;
    width_ = static_cast<std::uint64_t>(upper_ - lower_);
    scale_ = static_cast<double>(bins_) / static_cast<double>(width_);
    small_ = unsigned_wide{width_} * bins_ < unsigned_wide{1} << 62;
  }
  /// The quotient, nearly, and then exactly: division takes longer.
  std::size_t operator()(const T& x) const noexcept {
    if (x < lower_ || x >= upper_ || bins_ == 0) return bins_;
    const auto above = static_cast<std::uint64_t>(x - lower_);
    if (small_) {
      const double near = static_cast<double>(static_cast<std::int64_t>(above)) * scale_;
      const std::uint64_t k = std::min(static_cast<std::uint64_t>(static_cast<std::int64_t>(near)), bins_ - 1);
      const std::uint64_t place = above * bins_, begin = k * width_;
      return k - (begin > place) + (place >= begin + width_);
    }
    std::uint64_t k = std::min(static_cast<std::uint64_t>(static_cast<double>(above) * scale_), bins_ - 1);
    const unsigned_wide place = unsigned_wide{above} * bins_;
    while (unsigned_wide{k} * width_ > place) --k;
    while (place - unsigned_wide{k} * width_ >= width_) ++k;
    return k;
  }

 private:
  __extension__ typedef __int128 signed_wide;
  __extension__ typedef unsigned __int128 unsigned_wide;
  /// Holds all elements, bounds and their differences.
  using wide = std::conditional_t<sizeof(T) < 8 && sizeof(Bound) < 8, std::int64_t, signed_wide>;

  wide lower_, upper_;
  std::uint64_t bins_;
  std::uint64_t width_ = 0;
  double scale_ = 0;
  bool small_ = false;
};

/// The same of numbers that are taken as doubles.
class real_bins {
 public:
  real_bins(double lower, double upper, std::size_t bins) : bins_(bins) {
    if (!std::isfinite(lower) || !std::isfinite(upper)) {
      char bounds[80];
      std::snprintf(bounds, sizeof bounds, "from %g to %g", lower, upper);
      throw usage_error(errc::invalid_request,
                        std::string("histogram: bins ") + bounds + " have no width; give finite bounds");
    }
    const double width = upper - lower;
    if (!std::isfinite(width))
      unit_ = 0.5;
    else if (!std::isfinite(static_cast<double>(bins) / width))
      unit_ = 0x1p600;
    lower_ = lower * unit_;
    upper_ = upper * unit_;
    scale_ = static_cast<double>(bins) / (upper_ - lower_);
  }
  template <class T>
  std::size_t operator()(const T& x) const noexcept {
    const double v = static_cast<double>(x) * unit_;
    if (!(v >= lower_ && v < upper_)) return bins_;
    return std::min(static_cast<std::size_t>((v - lower_) * scale_), bins_ - 1);
  }

 private:
  /// A power of two that the range is multiplied by where it is too wide or too narrow for the arithmetic of doubles.
  double unit_ = 1;
  double lower_ = 0, upper_ = 0, scale_ = 0;
  std::size_t bins_;
};

}  // namespace ooc::detail
