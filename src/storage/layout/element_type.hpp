// Names of element types, as recorded in array_description::element_type.
//
// "b1" boolean, "f2" to "f16" floating (f16: the long double of x86), "c8" to "c32" complex, "i1" to
// "i8" and "u1" to "u8" integers, the digits being the size in bytes; "struct<N>" without the brackets
// ("struct24") for N bytes of any other type, see element_description.hpp.  Values are stored as they
// are in memory: little-endian on every machine that oocarray runs on.
#pragma once

#include <cstdint>
#include <string_view>

namespace ooc::storage {

/// Bytes of an element; 0 where the name is not one of the above.
std::uint32_t element_size(std::string_view type) noexcept;

/// Bytes to a multiple of which the place of such an element must be, so that a program may touch it.
std::uint32_t element_alignment(std::string_view type, std::uint32_t size) noexcept;

/// For messages: the names that there are.
inline constexpr const char* element_types = "b1 f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 u2 u4 u8 struct<N>";

}  // namespace ooc::storage
