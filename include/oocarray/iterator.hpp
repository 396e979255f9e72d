// Iterators over all elements of an array in row-major order, whatever its layout.
//
// With layout_right they are plain pointers.  With layout_tiled: tiled_iterator, random access,
// whose references are real ones into the array, so std::sort and friends work.  Stepping within a
// row of a tile is a pointer increment; other steps cost a division per dimension.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "oocarray/layout.hpp"

namespace ooc {

template <class T, std::size_t N>
class tiled_iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;
  using map_type = std::array<layout_tiled::dimension, N>;
  using extents_type = std::array<std::size_t, N>;

  tiled_iterator() = default;
  tiled_iterator(T* base, const map_type& map, const extents_type& extents, std::size_t position)
      : base_(base), map_(map), extents_(extents) {
    seek(position);
  }
  /// An iterator to const elements from one that may modify them.
  operator tiled_iterator<const T, N>() const requires(!std::is_const_v<T>) {
    return {base_, map_, extents_, position_};
  }

  reference operator*() const noexcept { return *at_; }
  pointer operator->() const noexcept { return at_; }
  reference operator[](difference_type n) const { return *(*this + n); }

  tiled_iterator& operator++() noexcept {
    ++position_;
    ++column_;
    if (column_ != extents_[N - 1] && (column_ & map_[N - 1].mask_) != 0)
      ++at_;
    else
      seek(position_);
    return *this;
  }
  tiled_iterator& operator--() noexcept {
    --position_;
    if ((column_ & map_[N - 1].mask_) != 0) {
      --column_;
      --at_;
    } else {
      seek(position_);
    }
    return *this;
  }
  tiled_iterator operator++(int) noexcept {
    tiled_iterator old = *this;
    ++*this;
    return old;
  }
  tiled_iterator operator--(int) noexcept {
    tiled_iterator old = *this;
    --*this;
    return old;
  }
  tiled_iterator& operator+=(difference_type n) noexcept {
    seek(position_ + static_cast<std::size_t>(n));
    return *this;
  }
  tiled_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
  friend tiled_iterator operator+(tiled_iterator i, difference_type n) noexcept { return i += n; }
  friend tiled_iterator operator+(difference_type n, tiled_iterator i) noexcept { return i += n; }
  friend tiled_iterator operator-(tiled_iterator i, difference_type n) noexcept { return i -= n; }
  friend difference_type operator-(const tiled_iterator& a, const tiled_iterator& b) noexcept {
    return static_cast<difference_type>(a.position_ - b.position_);
  }
  friend bool operator==(const tiled_iterator& a, const tiled_iterator& b) noexcept {
    return a.position_ == b.position_;
  }
  friend auto operator<=>(const tiled_iterator& a, const tiled_iterator& b) noexcept {
    return a.position_ <=> b.position_;
  }

 private:
  /// Goes to a position; one past the end lies on the row after the last, inside no tile.
  void seek(std::size_t position) noexcept {
    position_ = position;
    T* p = base_;
    if (N > 1 && extents_[N - 1] == 0) {  // of an array without a file
      at_ = p;
      return;
    }
    for (std::size_t k = N; k-- > 0;) {
      const std::size_t c = k == 0 ? position : position % extents_[k];
      position = k == 0 ? 0 : position / extents_[k];
      if (k == N - 1) column_ = c;
      p = map_[k].template advance<false>(p, c);
    }
    at_ = p;
  }

  T* base_ = nullptr;
  T* at_ = nullptr;
  std::size_t position_ = 0;  ///< row-major number of the element
  std::size_t column_ = 0;    ///< its last coordinate
  map_type map_{};
  extents_type extents_{};
};

}  // namespace ooc
