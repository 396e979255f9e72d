// Budgets and arrays of blocks of 4 KiB on several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/test_arrays.hpp"

namespace ooc::testing {

inline constexpr std::size_t page = 4096 / sizeof(double);  // elements in a block

/// So many blocks of 4 KiB beside the transfer buffers of the common store.
inline runtime_options small(unsigned read_ahead = 0, std::uint64_t blocks = 64) {
  return memory(common_store().core()->staging_bytes() + blocks * 4096, read_ahead);
}

/// Small arrays of the group, and parts of them, lie on all nodes.
inline array_options<double> small_array(const std::shared_ptr<process_group>& g, bool owner_computes = false) {
  return {.block = 4096, .stripes = {.sf = 4096}, .replace = true, .group = g, .owner_computes = owner_computes};
}

}  // namespace ooc::testing
