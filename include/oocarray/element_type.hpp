// Names of element types, as they are recorded with a file and compared when it is opened.
//
//     f4 f8 f16    float, double, long double    c8 c16 c32   std::complex of them (f16, c32: x86's long double
//                                                             only; another one is struct16, as its bytes are others,
//                                                             and bfloat16 is struct2)
//     f2           _Float16                      b1           bool
//     i1 i2 i4 i8  signed integers               u1 u2 u4 u8  unsigned integers, std::byte
//     struct<N>    any other trivially copyable type of N bytes: "struct24"
//
// The digits are bytes.  Files of one byte's elements open as u1 and as b1: bool was called u1
// once.  Files keep the byte order and padding of the machine that wrote them.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ooc {

namespace detail {

/// A T is known to be an address in this process.  Members of structs nobody can look at.
template <class T>
inline constexpr bool holds_address = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class C, class Traits>
inline constexpr bool holds_address<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool holds_address<std::span<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool holds_address<std::array<T, N>> = holds_address<T>;

/// Bits of the mantissa of the type above that has so many bytes.
constexpr int mantissa_of(std::size_t bytes) { return bytes == 2 ? 11 : bytes == 4 ? 24 : bytes == 8 ? 53 : 64; }

/// A floating-point type that is none of those above though its size is: bfloat16, another processor's long double.
template <class T>
constexpr bool is_other_float() {
  return std::is_floating_point_v<T> && std::numeric_limits<T>::digits != mantissa_of(sizeof(T));
}

}  // namespace detail

/// The name of T.  Specialise it to tell two of your own types of one size apart:
///
///     template <> struct ooc::element_type<particle> {
///       static std::string name() { return "particle-v2"; }
///     };
template <class T>
struct element_type {
  static std::string name() {
    const std::string bytes = std::to_string(sizeof(T));
    if constexpr (std::is_enum_v<T>)
      return element_type<std::underlying_type_t<T>>::name();
    else if constexpr (std::is_floating_point_v<T> && !detail::is_other_float<T>())
      return "f" + bytes;
    else if constexpr (std::is_integral_v<T>)
      return (std::is_signed_v<T> ? "i" : "u") + bytes;
    else
      return "struct" + bytes;
  }
};

template <class T>
struct element_type<std::complex<T>> {
  static std::string name() {
    return (detail::is_other_float<T>() ? "struct" : "c") + std::to_string(sizeof(std::complex<T>));
  }
};

template <>
struct element_type<bool> {
  static std::string name() { return "b1"; }
};

// gcc 12 knows its limits on every processor, and the type in C++ on x86 only.
#if defined(__FLT16_MAX__) && (defined(__x86_64__) || defined(__clang__) || __GNUC__ >= 13)
#define OOCARRAY_FLOAT16
template <>
struct element_type<_Float16> {
  static std::string name() { return "f2"; }
};
#endif

namespace detail {

/// A floating-point type; _Float16 too, which std::is_floating_point_v leaves out.
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
#ifdef OOCARRAY_FLOAT16
template <>
inline constexpr bool is_float<_Float16> = true;
#endif

}  // namespace detail

template <>
struct element_type<std::byte> {
  static std::string name() { return "u1"; }
};

}  // namespace ooc
