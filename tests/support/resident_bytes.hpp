// Memory of this process.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace ooc::testing {

/// Resident bytes for each byte in use: ThreadSanitizer keeps four of its own beside it.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t resident_per_byte = 5;
#else
inline constexpr std::uint64_t resident_per_byte = 1;
#endif

inline std::uint64_t resident_bytes() {
  std::uint64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace ooc::testing
