// The time that servers tell.
#pragma once

#include <chrono>
#include <cstdint>

namespace ooc::servers {

/// Nanoseconds since 1970, UTC.
inline std::uint64_t unix_time_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace ooc::servers
