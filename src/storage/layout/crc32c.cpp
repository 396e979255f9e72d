#include "storage/layout/crc32c.hpp"

#include <isa-l/crc.h>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) noexcept {
  // ISA-L's function neither inverts at the start nor at the end, and takes a non-const pointer.
  auto* p = static_cast<unsigned char*>(const_cast<void*>(data));
  return ~crc32_iscsi(p, static_cast<int>(bytes), ~before);
}

std::uint32_t chunk_sum(const std::byte* chunk) noexcept {
  const std::uint32_t crc = crc32c(chunk, chunk_size);
  return crc == 0 ? 1 : crc;
}

}  // namespace ooc::storage
