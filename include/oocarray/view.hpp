// Rows of an array: what a[i] is where more indices follow.
//
// A view is a pointer and the terms of the dimensions still open, copied by value: in a loop
//
//     for (std::size_t j = 1; j + 1 < n; ++j) b[i][j] = 0.5 * (a[i][j-1] + a[i][j+1]);
//
// the compiler hoists everything but the last index and vectorises as it does for a plain double*.
// Through references to char, unsigned char and std::byte the language lets a store change
// anything, also the array object itself: for these, take the row before the loop,
// `auto row = a[i];`.
//
// A view owns nothing and stays valid, as every reference into the array does, until the array is
// closed or destroyed; a resize() does not move elements, but views keep the extents they had.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>
#include <utility>

#include "oocarray/layout.hpp"

namespace ooc {

template <class T, std::size_t N, class Layout>
class view {
 public:
  using element = T;
  using map_type = std::array<typename Layout::dimension, N>;
  using extents_type = std::array<std::size_t, N>;

  view(T* origin, const map_type& map, const extents_type& extents) noexcept
      : origin_(origin), map_(map), extents_(extents) {}

  /// An element (N == 1), or the view of the dimensions that are left.  Checked by assert() only.
  decltype(auto) operator[](std::size_t i) const noexcept {
    assert(i < extents_[0] && "index out of range");
    T* const p = map_[0].template advance<N == 1>(origin_, i);
    if constexpr (N == 1)
      return static_cast<T&>(*p);
    else
      return rest(p, std::make_index_sequence<N - 1>{});
  }

  std::size_t extent(std::size_t k) const noexcept { return extents_[k]; }
  const extents_type& extents() const noexcept { return extents_; }
  /// Number of elements.
  std::size_t size() const noexcept {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }

  T* data() const noexcept requires(Layout::contiguous) { return origin_; }
  T* begin() const noexcept requires(Layout::contiguous) { return origin_; }
  T* end() const noexcept requires(Layout::contiguous) { return origin_ + size(); }
  operator std::span<T>() const noexcept requires(Layout::contiguous) { return {origin_, size()}; }

 private:
  template <std::size_t... K>
  view<T, N - 1, Layout> rest(T* p, std::index_sequence<K...>) const noexcept {
    return {p, {map_[K + 1]...}, {extents_[K + 1]...}};
  }

  T* origin_;
  map_type map_;
  extents_type extents_;
};

}  // namespace ooc
