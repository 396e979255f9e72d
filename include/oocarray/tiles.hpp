// Going through an array tile by tile, in the order in which tiles are stored.
//
//     for (auto t : a.tiles(ooc::access_mode::write))
//       for (std::size_t i = 0; i < t.extent(0); ++i)
//         for (std::size_t j = 0; j < t.extent(1); ++j) t(i, j) *= 2;
//
// With layout_tiled a tile is a block.  With layout_right it is a band of whole rows of about a
// block (or a part of one row, where a row is larger than that) and contiguous.  Tiles are clipped
// at the array's edge.  The next tiles are fetched ahead.  A tile that is handed out is in memory; one that cannot be
// read throws (ooc::error), where the touch of an element would end the process.
//
// Algorithms on a matrix of tiles take them by their coordinates in the grid of tiles, in any order:
//
//     const auto A = a.tiles(ooc::access_mode::write);
//     for (std::size_t i = k + 1; i < A.grid()[0]; ++i)
//       ooc::eigen_map(A(i, j)) -= ooc::eigen_map(A(i, k)) * ooc::eigen_map(A(k, j));
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include "oocarray/box.hpp"
#include "oocarray/detail/array_core.hpp"
#include "oocarray/layout.hpp"
#include "oocarray/view.hpp"

namespace ooc {

/// A box of the array as a strided piece of memory; owns nothing, valid as references are.
template <class T, std::size_t N>
class tile {
 public:
  using element = T;

  tile(T* data, const box<N>& where, const coordinates<N>& strides) noexcept
      : data_(data), box_(where), strides_(strides) {}
  tile(const tile&) = default;

  /// Assignment is as that of views (view.hpp): of a tile that has a name, it becomes another tile, ...
  tile& operator=(const tile&) & = default;
  /// ... and of one that has none, `a.slice(box) = b.slice(box)`, it copies elements.
  template <class From>
  requires detail::elements_for<From, T, N> tile operator=(const From& from) && {
    assign(from);
    return *this;
  }
  /// The elements become those of `from`, a view or a tile.
  template <class From>
  requires detail::elements_for<From, T, N>
  void assign(const From& from) const { as_rows(*this).assign(from); }

  /// The element with the lowest coordinates.
  T* data() const noexcept { return data_; }
  /// The elements of the array that the tile holds.
  const ooc::box<N>& box() const noexcept { return box_; }
  const coordinates<N>& lower() const noexcept { return box_.lower; }
  const coordinates<N>& upper() const noexcept { return box_.upper; }
  coordinates<N> extents() const noexcept {
    coordinates<N> e{};
    for (std::size_t k = 0; k < N; ++k) e[k] = box_.extent(k);
    return e;
  }
  std::size_t extent(std::size_t k) const noexcept { return box_.extent(k); }
  /// Elements between neighbours in each dimension; the last is 1.
  const coordinates<N>& strides() const noexcept { return strides_; }
  /// Number of elements.
  std::size_t size() const noexcept { return box_.size(); }

  /// An element by its coordinates within the tile.  Checked by assert() only.
  template <class... I>
  requires(sizeof...(I) == N) T& operator()(I... i) const noexcept {
    const coordinates<N> c{static_cast<std::size_t>(i)...};
    for (std::size_t k = 0; k < N; ++k) assert(c[k] < extent(k) && "index out of range");
    std::size_t at = c[N - 1];
    for (std::size_t k = 0; k + 1 < N; ++k) at += c[k] * strides_[k];
    return data_[at];
  }

#ifdef __cpp_lib_mdspan
  auto mdspan() const noexcept {
    using extents_type = std::dextents<std::size_t, N>;
    return std::mdspan<T, extents_type, std::layout_stride>(
        data_, typename std::layout_stride::template mapping<extents_type>(extents(), strides_));
  }
#endif

  /// The same elements as rows, which lie strides()[0] apart: to be indexed, as there is no pointer to all of them.
  friend view<T, N, detail::layout_of_box> as_rows(const tile& t) noexcept {
    std::array<detail::layout_of_box::dimension, N> map{};
    for (std::size_t k = 0; k < N; ++k) map[k].step_ = t.strides_[k];
    return {t.data_, map, t.extents()};
  }

  // As a matrix: row-major, `stride` elements from row to row.
  std::size_t rows() const noexcept requires(N == 2) { return extent(0); }
  std::size_t cols() const noexcept requires(N == 2) { return extent(1); }
  std::size_t stride() const noexcept requires(N == 2) { return strides_[0]; }

 private:
  T* data_;
  ooc::box<N> box_;
  coordinates<N> strides_;
};

/// The range that ooc_array::tiles() returns.  Valid as long as the array; begin() may be called
/// more than once.
template <class Array, class T, std::size_t N>
class tile_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = tile<T, N>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = tile<T, N>;

    iterator() = default;
    tile<T, N> operator*() const { return range_->at(number_); }
    iterator& operator++() {
      ++number_;
      range_->fetch(number_ + range_->ahead_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& a, std::default_sentinel_t) noexcept {
      return a.number_ == a.range_->size();
    }

   private:
    friend tile_range;
    iterator(const tile_range* range, std::size_t number) : range_(range), number_(number) {}
    const tile_range* range_ = nullptr;
    std::size_t number_ = 0;
  };

  /// Tiles of `shape` in row-major order; `ahead`: how many are fetched before their turn.
  tile_range(Array& array, const coordinates<N>& shape, std::size_t ahead)
      : array_(&array), shape_(shape), strides_(array.tile_strides()) {
    for (std::size_t k = 0; k < N; ++k) grid_[k] = (array.extent(k) + shape[k] - 1) / shape[k];
    ahead_ = std::min(ahead, size());
  }

  iterator begin() const {
    for (std::size_t k = 1; k <= ahead_; ++k) fetch(k);
    return {this, 0};
  }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Number of tiles.
  std::size_t size() const noexcept {
    std::size_t n = 1;
    for (std::size_t g : grid_) n *= g;
    return n;
  }
  /// Number of tiles in each dimension.
  const coordinates<N>& grid() const noexcept { return grid_; }
  /// Tile number k, 0 <= k < size(): for loops that several threads share.
  tile<T, N> operator[](std::size_t k) const { return at(k); }
  /// Tile (i, j, ...) of the grid.  Checked by assert() only.
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N) tile<T, N>
  operator()(I... i) const {
    const coordinates<N> c{static_cast<std::size_t>(i)...};
    for (std::size_t k = 0; k < N; ++k) assert(c[k] < grid_[k] && "tile out of range");
    return in_box(box_of(c));
  }

 private:
  box<N> box_of(const coordinates<N>& in_grid) const noexcept {
    box<N> b;
    for (std::size_t k = 0; k < N; ++k) {
      b.lower[k] = in_grid[k] * shape_[k];
      b.upper[k] = std::min(b.lower[k] + shape_[k], array_->extent(k));
    }
    return b;
  }
  box<N> box_of(std::size_t number) const noexcept {
    coordinates<N> c;
    for (std::size_t k = N; k-- > 0; number /= grid_[k]) c[k] = number % grid_[k];
    return box_of(c);
  }
  tile<T, N> in_box(const box<N>& b) const {
    array_->core().bring_in({b.lower, b.upper}, std::is_const_v<T> ? access_mode::read : access_mode::write);
    return {&array_->element(b.lower), b, strides_};
  }
  tile<T, N> at(std::size_t number) const { return in_box(box_of(number)); }
  void fetch(std::size_t number) const {
    if (ahead_ == 0 || number >= size()) return;
    const box<N> b = box_of(number);
    array_->core().prefetch({b.lower, b.upper}, detail::prefetched::not_promised);
  }

  Array* array_;
  coordinates<N> shape_;
  coordinates<N> strides_;
  coordinates<N> grid_{};
  std::size_t ahead_ = 0;
};

}  // namespace ooc
