// How much memory a command may take.
#pragma once

#include <cstdint>
#include <string>

namespace ooc::tool {

struct memory_limit {
  std::uint64_t bytes = 0;
  std::string whose;  ///< "that the machine has available", "of the control group"
};

/// What is available on the machine, or what its control group may have, whichever is less.
memory_limit available_memory();

}  // namespace ooc::tool
