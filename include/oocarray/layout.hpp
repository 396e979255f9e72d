// Where an element lies in an array's address range.
//
// An offset is a sum of one term per dimension, so a[i][j] adds the term of i, then that of j:
//
//     layout_right   i_k * step_k                          the row-major image; data() is a T*
//     layout_tiled   (i_k >> shift_k) * tile_step_k        tile t of the array at t * block_bytes,
//                    + (i_k & mask_k) * step_k             its elements row-major within it; tiles are
//                                                          numbered in the grid of max_extents, so that
//                                                          a resize moves none
//
// All arithmetic is inline and branchless; there is no check whether the element is in memory, as
// the processor's address translation does that.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace ooc {

namespace detail {

/// p advanced by bytes.
template <class T>
T* byte_offset(T* p, std::size_t bytes) noexcept {
  if constexpr (std::is_const_v<T>)
    return reinterpret_cast<T*>(reinterpret_cast<const std::byte*>(p) + bytes);
  else
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(p) + bytes);
}

/// A size kept as a pointer to an incomplete type: a store through an integer reference then cannot
/// change it, as far as the language's aliasing rules go, so loops over arrays of integers need not
/// load it again for every element (measured: 6 times as fast).
class stable_size {
 public:
  constexpr stable_size() = default;
  stable_size(std::size_t n) noexcept : value_(reinterpret_cast<const opaque*>(n)) {}
  operator std::size_t() const noexcept { return reinterpret_cast<std::size_t>(value_); }

 private:
  struct opaque;
  const opaque* value_ = nullptr;
};

}  // namespace detail

/// Row-major (the last index runs fastest), contiguous: the default.
struct layout_right {
  static constexpr bool contiguous = true;
  /// Whether the elements of a view of N dimensions follow each other.
  template <std::size_t N>
  static constexpr bool packed = true;

  /// The term of one dimension.
  class dimension {
   public:
    /// p advanced by i in this dimension; `Last`: it is the last one, whose step is known.
    template <bool Last, class T>
    T* advance(T* p, std::size_t i) const noexcept {
      if constexpr (Last)
        return p + i;
      else
        return p + i * step_;
    }
    detail::stable_size step_;  ///< elements
  };

  template <std::size_t N>
  static std::array<dimension, N> map(const std::array<std::size_t, N>& extents,
                                      std::span<const std::uint64_t> /*max_extents*/,
                                      std::span<const std::uint64_t> /*tile*/, std::size_t /*element_size*/,
                                      std::size_t /*block_bytes*/) noexcept {
    std::array<dimension, N> m{};
    std::size_t step = 1;
    for (std::size_t k = N; k-- > 0;) {
      m[k].step_ = step;
      step *= extents[k];
    }
    return m;
  }
};

namespace detail {

/// A box of a row-major image: its rows are contiguous, and lie apart.
struct layout_of_box : layout_right {
  static constexpr bool contiguous = false;
  template <std::size_t N>
  static constexpr bool packed = N == 1;
};

}  // namespace detail

/// Blocks are N-d tiles, each contiguous in memory: for algorithms that work block by block.
struct layout_tiled {
  static constexpr bool contiguous = false;
  template <std::size_t N>
  static constexpr bool packed = false;

  class dimension {
   public:
    template <bool Last, class T>
    T* advance(T* p, std::size_t i) const noexcept {
      const std::size_t in = (i & mask_) * (Last ? sizeof(T) : std::size_t{step_});
      return detail::byte_offset(p, (i >> shift_) * tile_step_ + in);
    }
    detail::stable_size tile_step_;  ///< bytes between neighbouring tiles
    detail::stable_size step_;       ///< bytes between neighbours within a tile
    detail::stable_size mask_;       ///< tile extent - 1
    detail::stable_size shift_;      ///< log2 of the tile extent
  };

  template <std::size_t N>
  static std::array<dimension, N> map(const std::array<std::size_t, N>& /*extents*/,
                                      std::span<const std::uint64_t> max_extents, std::span<const std::uint64_t> tile,
                                      std::size_t element_size, std::size_t block_bytes) noexcept {
    std::array<dimension, N> m{};
    std::size_t in = element_size;
    std::size_t out = block_bytes;
    for (std::size_t k = N; k-- > 0;) {
      m[k].tile_step_ = out;
      m[k].step_ = in;
      m[k].mask_ = tile[k] - 1;
      m[k].shift_ = static_cast<std::size_t>(std::countr_zero(tile[k]));
      in *= tile[k];
      out *= (max_extents[k] + tile[k] - 1) / tile[k];
    }
    return m;
  }
};

}  // namespace ooc
