// CRC32C (Castagnoli), of any bytes and of the 4 KiB chunks that stripe objects are checked by.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ooc::storage {

/// The CRC32C of bytes; with `before`, that of the bytes it belongs to followed by these.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0) noexcept;

/// The value that stands for a chunk with these 4096 bytes: its CRC32C, 1 where that is 0.
std::uint32_t chunk_sum(const std::byte* chunk) noexcept;

}  // namespace ooc::storage
