// One number for the bytes of a result, whatever the order in which its rows are looked at: runs
// with other numbers of ranks can be compared bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace examples {

/// Of row `index`; the checksum of a result is the sum over its rows.  A multiple of 2^-32 below 1,
/// so that sums of some thousand rows are exact in any order.
template <class T>
double row_checksum(std::size_t index, const T* row, std::size_t n) {
  std::uint64_t h = 0x9e3779b97f4a7c15u * (index + 1);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, row + i, sizeof(T) < sizeof bits ? sizeof(T) : sizeof bits);
    h = (h ^ bits) * 0x9fb21c651e98df25u;
    h ^= h >> 32;
  }
  return static_cast<double>(h >> 32) * 0x1p-32;
}

}  // namespace examples
