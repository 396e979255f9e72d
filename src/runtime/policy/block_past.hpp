// The facts that are remembered of a block while it is in memory; its frame has them.
#pragma once

#include <cstdint>

namespace ooc::detail {

struct block_past {
  bool read_ahead = false;      ///< it came before it was asked for, and has not been touched yet
  bool maps_itself = false;     ///< a grain that is mapped when it has arrived, before it is touched
  std::uint8_t stands_for = 1;  ///< of those read ahead: how many, with those that mapped themselves beside it
  bool aged = false;            ///< moved to its frame to see whether it is still used
  bool left = false;            ///< aged because a walk has left it (left_behind.hpp)
  bool watched = false;         ///< a grain that was read, and its first write counts (write_guess.hpp)
  bool swept = false;           ///< written behind a sweep, and not changed since
};

}  // namespace ooc::detail
