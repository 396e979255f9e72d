// Bytes [begin, end) of a file, or of a stripe object.
#pragma once

#include <cstdint>

namespace ooc::storage {

struct byte_interval {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const byte_interval&) const = default;
};

}  // namespace ooc::storage
