// The filters of chunks (oocarray/file_chunks.hpp), applied and undone one at a time.
//
// Functions without state; any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oocarray/file_chunks.hpp"

namespace ooc::storage {

/// Whether it makes a chunk shorter, or longer where that fails.
bool packs(chunk_filter f) noexcept;
/// Whether what it makes, or was made of, is in other memory: all but checksums.
bool copies(chunk_filter f) noexcept;
/// Whether the library that undoes and applies it counts bytes in 32 bits: a chunk has fewer, and what is packed need
/// not.
bool counts_in_32_bits(chunk_filter f) noexcept;
/// The most that filters which pack make of so many bytes, with checksums.
std::uint64_t most_packed(std::uint64_t bytes) noexcept;
/// The most bytes of a chunk between two of its filters.
std::uint64_t most_between(const std::vector<chunk_filter>& filters, std::uint64_t chunk) noexcept;

/// Makes `now` what it was before the filter: a part of itself, or in the memory `next`.  Returns why that cannot be,
/// as the end of a sentence about the chunk; empty: it is done.  `parameters`: as file_chunks has them.
std::string undo(chunk_filter f, std::span<const std::uint32_t> parameters, std::span<const std::byte>& now,
                 std::span<std::byte> next, std::uint32_t element_size);

/// Makes `now` what the filter makes of it, in `next`, which has most_packed() of it.  The same otherwise.
std::string apply(chunk_filter f, const chunk_packing& how, std::span<const std::byte>& now, std::span<std::byte> next,
                  std::uint32_t element_size);

/// Unpacks a block of LZ4 to the whole of `to`; false where that cannot be.  Only where the library has LZ4.
bool unpack_lz4_block(std::span<const std::byte> from, std::span<std::byte> to) noexcept;

/// HDF5's checksum, of pairs of bytes, the first one the greater half; a last odd byte is followed by zero
/// (H5checksum.c).
std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept;

}  // namespace ooc::storage
