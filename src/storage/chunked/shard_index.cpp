#include "storage/chunked/shard_index.hpp"

#include <cstring>
#include <limits>

#include "oocarray/error.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc {
namespace {

constexpr std::size_t entry_bytes = 16, sum_bytes = sizeof(std::uint32_t);
constexpr std::uint64_t never_written = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::vector<file_chunk> chunks_of_shard(std::span<const std::byte> index, bool summed) {
  const auto number = [&](std::size_t at) {  // the library runs on little-endian machines only
    std::uint64_t n = 0;
    std::memcpy(&n, index.data() + at, sizeof n);
    return n;
  };
  const std::size_t sums = summed ? sum_bytes : 0;
  if (index.size() < sums || (index.size() - sums) % entry_bytes != 0)
    throw usage_error(errc::invalid_request,
                      "the index of a shard cannot have " + std::to_string(index.size()) + " bytes");
  const std::size_t bytes = index.size() - sums;
  if (summed) {
    std::uint32_t stored = 0;
    std::memcpy(&stored, index.data() + bytes, sum_bytes);
    if (stored != storage::crc32c(index.data(), bytes))
      throw integrity_error(errc::corrupt, "the index of a shard does not match its checksum (CRC32C)");
  }
  std::vector<file_chunk> all;
  for (std::size_t at = 0; at < bytes; at += entry_bytes) {
    const std::uint64_t offset = number(at), n = number(at + 8);
    const bool written = offset != never_written;
    if (written && (n == 0 || n > std::numeric_limits<std::uint32_t>::max()))
      throw usage_error(errc::invalid_request,
                        "a chunk of a shard has " + std::to_string(n) + " bytes, which is none, or 4 GiB or more");
    all.push_back(written ? file_chunk{offset, static_cast<std::uint32_t>(n), 0} : file_chunk{});
  }
  return all;
}

std::size_t storage::shard_index_bytes(std::size_t chunks, bool summed) noexcept {
  return chunks * entry_bytes + (summed ? sum_bytes : 0);
}

std::vector<std::byte> storage::shard_index_of(const std::vector<file_chunk>& chunks, bool summed) {
  std::vector<std::byte> index(shard_index_bytes(chunks.size(), summed));
  std::byte* to = index.data();
  const auto put = [&](const auto number) {
    std::memcpy(to, &number, sizeof number);
    to += sizeof number;
  };
  for (const file_chunk& c : chunks) {
    put(c.bytes != 0 ? c.offset : never_written);
    put(c.bytes != 0 ? std::uint64_t{c.bytes} : never_written);
  }
  if (summed) put(crc32c(index.data(), index.size() - sum_bytes));
  return index;
}

}  // namespace ooc
