// Numbers in the byte order of networks, as HDF5's filters have them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ooc::storage {

template <class T>
T big_endian(const std::byte* from) noexcept {
  T n = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) n = static_cast<T>(n << 8 | static_cast<std::uint8_t>(from[i]));
  return n;
}

}  // namespace ooc::storage
