// Whether a chunk of another format fits into memory: HDF5 and Zarr unpack chunks whole.
#pragma once

#include <cstdint>
#include <string>

namespace ooc::detail {

struct memory_limit {
  std::uint64_t bytes = 0;
  std::string whose;  ///< "that the machine has available", "of the control group (cgroup)"
};

/// The least of what is available on the machine, what the control group may have, and the addresses that the process
/// may have.
memory_limit available_memory();

struct chunk_needs {
  std::string what;     ///< whose chunk it is, as messages name it
  std::string extents;  ///< of the chunk, as "512x512"
  std::uint64_t bytes = 0;
  std::uint64_t needed = 0;  ///< bytes of memory at the same time, with copies
  std::string remedy;
};

/// Throws usage_error (ENOMEM), which names all of this, where `needed` is more than the limit.
void check_chunk_memory(const chunk_needs& chunk, const memory_limit& limit);

}  // namespace ooc::detail
