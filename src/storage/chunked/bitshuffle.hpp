// Bitshuffle, HDF5's filter 32008 (K. Masui et al., "A compression scheme for radio data in high performance
// computing", Astronomy and Computing 12, 2015): of blocks of elements the first bits of all, then the second ones,
// ..., each block perhaps packed.
//
// A function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

/// As undo() of chunk_filters.hpp, for the three that begin with bitshuffle.
std::string undo_bitshuffle(chunk_filter f, std::span<const std::byte>& now, std::span<std::byte> next,
                            std::uint32_t element_size);

}  // namespace ooc::storage
