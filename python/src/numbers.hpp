// From the name of an element type to the type: the one place where it is decided which instance of
// a template runs.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "bindings.hpp"

namespace ooc::python {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// f(std::type_identity<T>()) of the number type with that name; a bool is an unsigned byte.
template <class F>
decltype(auto) with_number(const std::string& name, F f) {
  if (name == "i1") return f(std::type_identity<std::int8_t>());
  if (name == "i2") return f(std::type_identity<std::int16_t>());
  if (name == "i4") return f(std::type_identity<std::int32_t>());
  if (name == "i8") return f(std::type_identity<std::int64_t>());
  if (name == "b1" || name == "u1") return f(std::type_identity<std::uint8_t>());
  if (name == "u2") return f(std::type_identity<std::uint16_t>());
  if (name == "u4") return f(std::type_identity<std::uint32_t>());
  if (name == "u8") return f(std::type_identity<std::uint64_t>());
  if (name == "f4") return f(std::type_identity<float>());
  if (name == "f8") return f(std::type_identity<double>());
  if (name == "c8") return f(std::type_identity<std::complex<float>>());
  if (name == "c16") return f(std::type_identity<std::complex<double>>());
  throw usage_error(errc::type_mismatch, "there is no arithmetic on elements of type '" + name + "'");
}

template <class T>
struct sum_of {  // as NumPy sums: integers in 64 bits; floats here in double
  using type =
      std::conditional_t<is_complex<T>, std::complex<double>,
                         std::conditional_t<std::is_floating_point_v<T>, double,
                                            std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;
};

}  // namespace ooc::python
