// Boxes of elements: the regions that prefetch(), pin() and overwrite() speak of.
#pragma once

#include <array>
#include <cstddef>

namespace ooc {

/// The coordinates of an element, slowest dimension first; in elements.
template <std::size_t N>
using coordinates = std::array<std::size_t, N>;

/// The elements c with lower[k] <= c[k] < upper[k] for every k: `box<2>{{0, 0}, {rows, columns}}`.
///
/// A plain value.  A box with lower[k] == upper[k] somewhere is empty and allowed everywhere; one
/// with lower[k] > upper[k], or that reaches past the array, is refused by whoever is given it
/// (usage_error, errc::invalid_request).
template <std::size_t N>
struct box {
  coordinates<N> lower{};
  coordinates<N> upper{};

  constexpr std::size_t extent(std::size_t k) const noexcept { return upper[k] - lower[k]; }

  constexpr bool empty() const noexcept {
    for (std::size_t k = 0; k < N; ++k)
      if (lower[k] >= upper[k]) return true;
    return false;
  }
  /// Number of elements.
  constexpr std::size_t size() const noexcept {
    if (empty()) return 0;
    std::size_t n = 1;
    for (std::size_t k = 0; k < N; ++k) n *= extent(k);
    return n;
  }
  constexpr bool contains(const coordinates<N>& c) const noexcept {
    for (std::size_t k = 0; k < N; ++k)
      if (c[k] < lower[k] || c[k] >= upper[k]) return false;
    return true;
  }

  bool operator==(const box&) const = default;
};

}  // namespace ooc
