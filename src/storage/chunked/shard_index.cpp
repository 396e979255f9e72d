#include <cstring>
#include <limits>

#include "oocarray/error.hpp"
#include "oocarray/file_chunks.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc {

std::vector<file_chunk> chunks_of_shard(std::span<const std::byte> index, bool summed) {
  constexpr std::size_t entry = 16, sum = sizeof(std::uint32_t);
  const auto number = [&](std::size_t at) {  // the library runs on little-endian machines only
    std::uint64_t n = 0;
    std::memcpy(&n, index.data() + at, sizeof n);
    return n;
  };
  const std::size_t sums = summed ? sum : 0;
  if (index.size() < sums || (index.size() - sums) % entry != 0)
    throw usage_error(errc::invalid_request,
                      "the index of a shard cannot have " + std::to_string(index.size()) + " bytes");
  const std::size_t bytes = index.size() - sums;
  if (summed) {
    std::uint32_t stored = 0;
    std::memcpy(&stored, index.data() + bytes, sum);
    if (stored != storage::crc32c(index.data(), bytes))
      throw integrity_error(errc::corrupt, "the index of a shard does not match its checksum (CRC32C)");
  }
  std::vector<file_chunk> all;
  for (std::size_t at = 0; at < bytes; at += entry) {
    const std::uint64_t offset = number(at), n = number(at + 8);
    const bool written = offset != std::numeric_limits<std::uint64_t>::max();
    if (written && (n == 0 || n > std::numeric_limits<std::uint32_t>::max()))
      throw usage_error(errc::invalid_request,
                        "a chunk of a shard has " + std::to_string(n) + " bytes, which is none, or 4 GiB or more");
    all.push_back(written ? file_chunk{offset, static_cast<std::uint32_t>(n), 0} : file_chunk{});
  }
  return all;
}

}  // namespace ooc
