// The part of a copy or transposition that has no types: which boxes, in which order, through which
// memory.  What is done to elements is an element_kernel, made by the template
// (algorithm/copy.hpp).
//
// Threads: run_copy() is called by one thread; it calls the kernel from several at once, for
// different elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc::detail {

/// Converts elements from one place in memory to another.  Without functions the bytes stay as they are.
struct element_kernel {
  /// to[i] = from[i], 0 <= i < count.
  void (*run)(const std::byte* from, std::byte* to, std::size_t count) = nullptr;
  /// to[c * to_stride + r] = from[r * from_stride + c], r < rows, c < columns; strides count
  /// elements.
  void (*panel)(const std::byte* from, std::size_t from_stride, std::byte* to, std::size_t to_stride, std::size_t rows,
                std::size_t columns) = nullptr;
  bool changes = false;  ///< the bytes of an element
};

template <class T, class U>
void convert_run(const std::byte* from, std::byte* to, std::size_t count) {
  const T* const x = reinterpret_cast<const T*>(from);
  U* const y = reinterpret_cast<U*>(to);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<U>(x[i]);
}

/// Squares of 8 go through registers or the first cache, so that lines are read and written whole.
template <class T, class U>
void convert_panel(const std::byte* from, std::size_t from_stride, std::byte* to, std::size_t to_stride,
                   std::size_t rows, std::size_t columns) {
  const T* const x = reinterpret_cast<const T*>(from);
  U* const y = reinterpret_cast<U*>(to);
  constexpr std::size_t side = 8;
  for (std::size_t r0 = 0; r0 < rows; r0 += side)
    for (std::size_t c0 = 0; c0 < columns; c0 += side) {
      const T* const p = x + r0 * from_stride + c0;
      U* const q = y + c0 * to_stride + r0;
      if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<U>)
        if (r0 + side <= rows && c0 + side <= columns) {
          U square[side][side];
          for (std::size_t r = 0; r < side; ++r)
            for (std::size_t c = 0; c < side; ++c) square[c][r] = static_cast<U>(p[r * from_stride + c]);
          for (std::size_t c = 0; c < side; ++c)
            for (std::size_t r = 0; r < side; ++r) q[c * to_stride + r] = square[c][r];
          continue;
        }
      const std::size_t r1 = rows - r0 < side ? rows - r0 : side;
      const std::size_t c1 = columns - c0 < side ? columns - c0 : side;
      for (std::size_t c = 0; c < c1; ++c)
        for (std::size_t r = 0; r < r1; ++r) q[c * to_stride + r] = static_cast<U>(p[r * from_stride + c]);
    }
}

template <class T, class U>
constexpr element_kernel kernel_for() {
  return {convert_run<T, U>, convert_panel<T, U>, !std::is_same_v<T, U>};
}

struct sixteen_bytes {
  std::uint64_t low, high;
};

/// For elements of any type whose bytes stay.
inline element_kernel kernel_for_bytes(std::size_t element_size) {
  switch (element_size) {
    case 1: return kernel_for<std::uint8_t, std::uint8_t>();
    case 2: return kernel_for<std::uint16_t, std::uint16_t>();
    case 4: return kernel_for<std::uint32_t, std::uint32_t>();
    case 8: return kernel_for<std::uint64_t, std::uint64_t>();
    case 16: return kernel_for<sixteen_bytes, sixteen_bytes>();
    default: return {};
  }
}

/// The elements from_lower + s of `from` become the elements to_lower + d of `to`, where
/// d[k] = s[permutation[k]] and 0 <= d[k] < extents[k].
struct copy_request {
  const char* verb = "copy";  ///< for messages and marks
  array_core* from = nullptr;
  array_core* to = nullptr;   ///< may be `from`: a square matrix, whole, that is transposed
  std::size_t from_size = 0;  ///< bytes of an element
  std::size_t to_size = 0;
  std::vector<std::size_t> from_lower;
  std::vector<std::size_t> to_lower;
  std::vector<std::size_t> extents;
  std::vector<std::size_t> permutation;
  element_kernel kernel;
  pass_options options;
};

pass_statistics run_copy(const copy_request& r);

}  // namespace ooc::detail
