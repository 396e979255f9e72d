// The index of a Zarr shard, which says where its chunks lie; chunks_of_shard() of oocarray/file_chunks.hpp reads it.
//
// Functions without state.
#pragma once

#include <cstddef>
#include <vector>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

std::size_t shard_index_bytes(std::size_t chunks, bool summed) noexcept;

/// Chunks of no bytes were never written.
std::vector<std::byte> shard_index_of(const std::vector<file_chunk>& chunks, bool summed);

}  // namespace ooc::storage
