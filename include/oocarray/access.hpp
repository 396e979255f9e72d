// How a program means to use an array.
#pragma once

#include <cstdint>

namespace ooc {

enum class access_mode : std::uint8_t {
  read,   ///< elements are only read; nothing becomes dirty
  write,  ///< elements are read and written
};

/// Advice for read-ahead; only speed depends on it.
enum class access_pattern : std::uint8_t {
  automatic,   ///< sweeps, also several at once, are recognised (default)
  sequential,  ///< read ahead from the first touch
  random,      ///< never read ahead
};

/// How safe data are when writeback() or sync() returns.
enum class durability : std::uint8_t {
  acknowledged,  ///< every I/O node has them; they survive the death of its process
  durable,       ///< on stable storage; they survive the loss of power
};
inline constexpr durability durable = durability::durable;

/// Says aloud that modified data may be lost: `a.invalidate(ooc::discard)`.
struct discard_t {
  explicit discard_t() = default;
};
inline constexpr discard_t discard{};

}  // namespace ooc
