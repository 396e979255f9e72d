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
//
// *Assignment* means what it means in NumPy, for views and for tiles (tiles.hpp):
//
//     a[1] = b[2];                          // copies the elements of a row, of arrays of either layout
//     a.slice(here) = a.slice(there);       // boxes, which may overlap
//     auto r = a[1];  r = b[2];             // r is another row; no element changes
//     r.assign(b[2]);                       // copies the elements
//
// Both sides have the same number of dimensions, the same extents, else usage_error
// (errc::invalid_request) is thrown and nothing changes, and elements of one type; those of the right side
// may be const.  For other types and for whole arrays there is ooc::copy() (algorithm/copy.hpp).
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "oocarray/error.hpp"
#include "oocarray/layout.hpp"

namespace ooc {

namespace detail {

/// A view or a tile, whose elements those of a box of T with N dimensions may be given.
template <class From, class T, std::size_t N>
concept elements_for = !std::is_const_v<T> && std::is_copy_assignable_v<T> && requires(const From& from) {
  requires std::same_as<std::remove_const_t<typename From::element>, T>;
  requires std::tuple_size_v<typename decltype(as_rows(from))::extents_type>
  == N;
};

template <class To, class From>
void assign_elements(const To& to, const From& from);

}  // namespace detail

template <class T, std::size_t N, class Layout>
class view {
 public:
  using element = T;
  using map_type = std::array<typename Layout::dimension, N>;
  using extents_type = std::array<std::size_t, N>;
  /// Its elements follow each other in memory.
  static constexpr bool packed = Layout::template packed<N>;

  view(T* origin, const map_type& map, const extents_type& extents) noexcept
      : origin_(origin), map_(map), extents_(extents) {}
  view(const view&) = default;

  /// Of a view that has a name: it becomes a view of other elements.
  view& operator=(const view&) & = default;
  /// Of one that has none, as a[i]: its elements become those of `from`.
  template <class From>
  requires detail::elements_for<From, T, N> view operator=(const From& from) && {
    assign(from);
    return *this;
  }
  /// The elements become those of `from`, a view or a tile.
  template <class From>
  requires detail::elements_for<From, T, N>
  void assign(const From& from) const { detail::assign_elements(*this, as_rows(from)); }

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

  T* data() const noexcept requires(packed) { return origin_; }
  T* begin() const noexcept requires(packed) { return origin_; }
  T* end() const noexcept requires(packed) { return origin_ + size(); }
  operator std::span<T>() const noexcept requires(packed) { return {origin_, size()}; }

  /// Itself: what views and tiles are assigned as.
  friend view as_rows(const view& v) noexcept { return v; }

 private:
  template <std::size_t... K>
  view<T, N - 1, Layout> rest(T* p, std::index_sequence<K...>) const noexcept {
    return {p, {map_[K + 1]...}, {extents_[K + 1]...}};
  }

  template <class To, class From>
  friend void detail::assign_elements(const To& to, const From& from);

  T* origin_;
  map_type map_;
  extents_type extents_;
};

namespace detail {

[[noreturn]] inline void refuse_assignment(std::span<const std::size_t> to, std::span<const std::size_t> from) {
  const auto text = [](std::span<const std::size_t> extents) {
    std::string s;
    for (const std::size_t e : extents) s += (s.empty() ? "" : " x ") + std::to_string(e);
    return s;
  };
  throw usage_error(errc::invalid_request, "elements in a shape of " + text(from) +
                                               " cannot be assigned to a shape of " + text(to) +
                                               ": take a slice() or row of the same extents");
}

template <class T, class U, std::size_t N, class To, class From>
void assign_rows(const view<T, N, To>& to, const view<U, N, From>& from, bool backward) {
  const std::size_t n = to.extent(0);
  if constexpr (N == 1 && To::template packed<N> && From::template packed<N>) {
    std::memmove(static_cast<void*>(to.data()), from.data(), n * sizeof(T));
  } else {
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = backward ? n - 1 - k : k;
      if constexpr (N == 1)
        to[i] = from[i];
      else
        assign_rows(to[i], from[i], backward);
    }
  }
}

/// Views that overlap are of one array and go through it in the same steps, so no element is written before it
/// has been read where the order is that of the memory, from the end that `to` is further on.
template <class To, class From>
void assign_elements(const To& to, const From& from) {
  if (to.extents() != from.extents()) refuse_assignment(to.extents(), from.extents());
  if (to.size() != 0) assign_rows(to, from, std::less<const void*>{}(from.origin_, to.origin_));
}

}  // namespace detail

}  // namespace ooc
