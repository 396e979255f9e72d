// Memory of this process.
#pragma once

#include <cstdint>
#include <fstream>

namespace ooc::testing {

inline std::uint64_t resident_bytes() {
  std::uint64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

}  // namespace ooc::testing
