// Bytes of numbers in the other order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ooc::tool {

template <class T>
T reversed_bytes(T x) noexcept {
  if constexpr (sizeof(T) == 2)
    return __builtin_bswap16(x);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bswap32(x);
  else
    return __builtin_bswap64(x);
}

template <class T>
void swap_each(std::span<std::byte> bytes) noexcept {
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + i, sizeof x);
    x = reversed_bytes(x);
    std::memcpy(bytes.data() + i, &x, sizeof x);
  }
}

/// Turns the bytes of each `unit` round; 0: nothing.
inline void swap_bytes(std::span<std::byte> bytes, std::uint32_t unit) noexcept {
  if (unit == 2) return swap_each<std::uint16_t>(bytes);
  if (unit == 4) return swap_each<std::uint32_t>(bytes);
  if (unit == 8) return swap_each<std::uint64_t>(bytes);
  for (std::size_t i = 0; unit > 1 && i + unit <= bytes.size(); i += unit)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + unit));
}

}  // namespace ooc::tool
