#include "storage/chunked/bitshuffle.hpp"

#ifdef OOCARRAY_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "storage/chunked/big_endian.hpp"
#include "storage/chunked/chunk_filters.hpp"

namespace ooc::storage {
namespace {

constexpr std::size_t together = 8;  // elements, of which a bit each makes a byte

/// Bit c of byte r becomes bit r of byte c.
std::uint64_t transposed(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

/// `n` elements, a multiple of `together`.
void unshuffle_bits(const std::byte* from, std::byte* to, std::size_t n, std::size_t element) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t row = n / together;  // bytes that have one bit of all elements
  for (std::size_t byte = 0; byte < element; ++byte)
    for (std::size_t j = 0; j < row; ++j) {
      std::uint64_t bits = 0;
      for (std::size_t bit = 0; bit < 8; ++bit)
        bits |= static_cast<std::uint64_t>(from[(8 * byte + bit) * row + j]) << (8 * bit);
      bits = transposed(bits);
      for (std::size_t i = 0; i < together; ++i)
        to[(together * j + i) * element + byte] = static_cast<std::byte>(bits >> (8 * i));
    }
}

/// What the library chooses, in elements.
std::size_t usual_block(std::size_t element) {
  return std::max<std::size_t>(8192 / element / together * together, 128);
}

/// Unpacks to the whole of `to`; false where that cannot be.
bool unpack(chunk_filter f, std::span<const std::byte> from, std::span<std::byte> to) {
#ifdef OOCARRAY_LZ4
  if (f == chunk_filter::bitshuffle_lz4) return unpack_lz4_block(from, to);
#endif
#ifdef OOCARRAY_ZSTD
  if (f == chunk_filter::bitshuffle_zstd)
    return ZSTD_decompress(to.data(), to.size(), from.data(), from.size()) == to.size();
#endif
  static_cast<void>(f);
  return from.size() == to.size();
}

}  // namespace

std::string undo_bitshuffle(chunk_filter f, std::span<const std::byte>& now, std::span<std::byte> next,
                            std::uint32_t element_size) {
  constexpr std::size_t header = 12, most_in_a_block = 1 << 30;
  const bool packed = f != chunk_filter::bitshuffle;
  std::span<const std::byte> from = now;
  std::uint64_t bytes = from.size(), block = usual_block(element_size);
  if (packed) {
    if (from.size() < header) return "is too short (bitshuffle)";
    bytes = big_endian<std::uint64_t>(from.data());
    block = big_endian<std::uint32_t>(from.data() + 8) / element_size;
    from = from.subspan(header);
  }
  if (bytes > next.size()) return "unpacks to more than a chunk (bitshuffle)";
  if (bytes % element_size != 0 || block == 0 || block % together != 0) return "cannot be unpacked (bitshuffle)";
  std::uint64_t left = bytes / element_size;
  block = std::min<std::uint64_t>(block, std::max<std::uint64_t>(left / together * together, together));
  if (block * element_size > most_in_a_block) return "has blocks of more than 1 GiB (bitshuffle)";
  thread_local std::vector<std::byte> shuffled;
  shuffled.resize(std::max<std::size_t>(shuffled.size(), packed ? block * element_size : 0));
  std::byte* to = next.data();
  while (left >= together) {
    const std::uint64_t n = std::min(block, left / together * together);
    const std::size_t size = n * element_size;
    const std::byte* bits = from.data();
    std::size_t stored = size;
    if (packed) {
      if (from.size() < 4) return "is cut short (bitshuffle)";
      stored = big_endian<std::uint32_t>(from.data());
      from = from.subspan(4);
    }
    if (stored > from.size()) return "is cut short (bitshuffle)";
    if (packed) {
      if (!unpack(f, from.first(stored), std::span(shuffled).first(size))) return "cannot be unpacked (bitshuffle)";
      bits = shuffled.data();
    }
    unshuffle_bits(bits, to, n, element_size);
    from = from.subspan(stored);
    to += size;
    left -= n;
  }
  if (from.size() < left * element_size) return "is cut short (bitshuffle)";
  std::memcpy(to, from.data(), left * element_size);
  now = next.first(bytes);
  return "";
}

}  // namespace ooc::storage
