#include "storage/chunked/chunk_filters.hpp"

#include <isa-l/igzip_lib.h>

#ifdef OOCARRAY_ZSTD
#include <zstd.h>
#endif
#ifdef OOCARRAY_BLOSC
#include <blosc.h>
#endif
#ifdef OOCARRAY_LZF
#include <lzf.h>
#endif
#ifdef OOCARRAY_LZ4
#include <lz4.h>
#endif
#ifdef OOCARRAY_BZIP2
#include <bzlib.h>
#endif
#ifdef OOCARRAY_SZIP
extern "C" {  // which its header leaves to C++
#include <szlib.h>
}
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "storage/chunked/big_endian.hpp"
#include "storage/chunked/bitshuffle.hpp"
#include "storage/chunked/blosc_memory.hpp"
#include "storage/chunked/scale_offset.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::storage {
namespace {

std::string check_fletcher32(std::span<const std::byte>& bytes) {
  if (bytes.size() < 4) return "is too short for its checksum";
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
  bytes = bytes.first(bytes.size() - 4);
  const std::uint32_t is = fletcher32(bytes);
  // HDF5 before 1.6.3 wrote the bytes of both halves the other way round.
  const std::uint32_t other = (is & 0x00ff00ffU) << 8 | (is & 0xff00ff00U) >> 8;
  return stored == is || stored == other ? "" : "does not match its checksum (Fletcher32)";
}

std::string check_crc32c(std::span<const std::byte>& bytes) {
  if (bytes.size() < 4) return "is too short for its checksum";
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
  bytes = bytes.first(bytes.size() - 4);
  return stored == crc32c(bytes.data(), bytes.size()) ? "" : "does not match its checksum (CRC32C)";
}

/// As many bytes as a library that counts them in 32 bits writes at once.
std::uint32_t at_most_4_gib(std::span<const std::byte> to) {
  return static_cast<std::uint32_t>(std::min<std::size_t>(to.size(), UINT32_MAX));
}

/// The format's checksum is compared.
std::string inflate(std::span<const std::byte>& bytes, std::span<std::byte> to, chunk_filter format) {
  const bool gzip = format == chunk_filter::gzip;
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = gzip ? ISAL_GZIP : ISAL_ZLIB;
  state.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  state.avail_in = static_cast<std::uint32_t>(bytes.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(to.data());
  const std::uint32_t room = state.avail_out = at_most_4_gib(to);
  const int e = isal_inflate_stateless(&state);
  bytes = to.first(room - state.avail_out);
  if (e == ISAL_DECOMP_OK) return "";
  return std::string(e == ISAL_OUT_OVERFLOW         ? "unpacks to more than a chunk"
                     : e == ISAL_INCORRECT_CHECKSUM ? "does not match its checksum"
                                                    : "cannot be unpacked") +
         (gzip ? " (gzip)" : " (deflate)");
}

/// `Element`: its bytes, where they are known when this is compiled; 0: `element` has them.
template <std::size_t Element>
void unshuffle_elements(const std::byte* from, std::byte* to, std::size_t n, std::size_t element) {
  const std::size_t bytes = Element != 0 ? Element : element;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t b = 0; b < bytes; ++b) to[i * bytes + b] = from[b * n + i];
}

void unshuffle(std::span<const std::byte> from, std::span<std::byte> to, std::size_t element) {
  const std::size_t n = from.size() / element;
  const auto by = element == 2   ? unshuffle_elements<2>
                  : element == 4 ? unshuffle_elements<4>
                  : element == 8 ? unshuffle_elements<8>
                                 : unshuffle_elements<0>;
  by(from.data(), to.data(), n, element);
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(n * element), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(n * element));
}

#ifdef OOCARRAY_ZSTD
std::string unpack_zstd(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context) return "cannot be unpacked: there is no memory for it (Zstandard)";
  const std::size_t n = ZSTD_decompressDCtx(context.get(), to.data(), to.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(n)) return std::string("cannot be unpacked (Zstandard: ") + ZSTD_getErrorName(n) + ")";
  bytes = to.first(n);
  return "";
}
#endif

#ifdef OOCARRAY_BLOSC
std::string unpack_blosc(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  std::size_t unpacked = 0;
  if (blosc_cbuffer_validate(bytes.data(), bytes.size(), &unpacked) != 0) return "is no whole buffer of Blosc";
  if (unpacked > to.size()) return "unpacks to more than a chunk (Blosc)";
  const int n = blosc_decompress_ctx(bytes.data(), to.data(), to.size(), 1);
  note_blosc_call(unpacked);
  if (n < 0 || static_cast<std::size_t>(n) != unpacked) return "cannot be unpacked (Blosc)";
  bytes = to.first(unpacked);
  return "";
}
#endif

#ifdef OOCARRAY_LZF
std::string unpack_lzf(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  const auto n = lzf_decompress(bytes.data(), static_cast<unsigned>(bytes.size()), to.data(), at_most_4_gib(to));
  if (n == 0) return "cannot be unpacked (LZF)";
  bytes = to.first(n);
  return "";
}
#endif

#ifdef OOCARRAY_LZ4
std::string unpack_lz4(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  std::uint32_t n = 0;
  if (bytes.size() < sizeof n) return "is too short (LZ4)";
  std::memcpy(&n, bytes.data(), sizeof n);
  if (n > to.size()) return "unpacks to more than a chunk (LZ4)";
  if (!unpack_lz4_block(bytes.subspan(sizeof n), to.first(n))) return "cannot be unpacked (LZ4)";
  bytes = to.first(n);
  return "";
}

/// Bytes in all, bytes of a block; of each block its bytes as packed, which are as many as it has where it is not.
std::string unpack_hdf5_lz4(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  constexpr std::size_t header = 12;
  if (bytes.size() < header) return "is too short (LZ4)";
  const auto all = big_endian<std::uint64_t>(bytes.data());
  const auto block = big_endian<std::uint32_t>(bytes.data() + 8);
  if (all > to.size()) return "unpacks to more than a chunk (LZ4)";
  if (block == 0 && all > 0) return "cannot be unpacked (LZ4)";
  std::span<const std::byte> from = bytes.subspan(header);
  for (std::uint64_t done = 0; done < all;) {
    const std::size_t n = std::min<std::uint64_t>(block, all - done);
    if (from.size() < 4) return "is cut short (LZ4)";
    const std::size_t packed = big_endian<std::uint32_t>(from.data());
    from = from.subspan(4);
    if (packed > from.size()) return "is cut short (LZ4)";
    const std::span<std::byte> part = to.subspan(done, n);
    if (packed == n)
      std::memcpy(part.data(), from.data(), n);
    else if (!unpack_lz4_block(from.first(packed), part))
      return "cannot be unpacked (LZ4)";
    from = from.subspan(packed);
    done += n;
  }
  bytes = to.first(all);
  return "";
}
#endif

#ifdef OOCARRAY_BZIP2
std::string unpack_bzip2(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  unsigned n = at_most_4_gib(to);
  auto* const from = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  const int e = BZ2_bzBuffToBuffDecompress(reinterpret_cast<char*>(to.data()), &n, from,
                                           static_cast<unsigned>(bytes.size()), 0, 0);
  if (e != BZ_OK)
    return std::string(e == BZ_OUTBUFF_FULL ? "unpacks to more than a chunk" : "cannot be unpacked") + " (bzip2)";
  bytes = to.first(n);
  return "";
}
#endif

#ifdef OOCARRAY_SZIP
/// Before what is packed, how many bytes it was.
std::string unpack_szip(std::span<const std::uint32_t> parameters, std::span<const std::byte>& bytes,
                        std::span<std::byte> to) {
  std::uint32_t all = 0;
  if (parameters.size() != 4) return "cannot be unpacked (szip), as its parameters are incomplete";
  const auto within = [&](std::size_t i, std::uint32_t most) { return parameters[i] != 0 && parameters[i] <= most; };
  if (!within(1, 32) || parameters[1] % 2 != 0 || !within(2, 64) || !within(3, 4096))
    return "cannot be unpacked (szip), as its parameters are none that HDF5 writes";
  if (bytes.size() < sizeof all) return "is too short (szip)";
  std::memcpy(&all, bytes.data(), sizeof all);
  if (all > to.size()) return "unpacks to more than a chunk (szip)";
  const auto parameter = [&](std::size_t i) { return static_cast<int>(parameters[i]); };
  SZ_com_t how{.options_mask = parameter(0),
               .bits_per_pixel = parameter(2),
               .pixels_per_block = parameter(1),
               .pixels_per_scanline = parameter(3)};
  std::size_t n = all;
  if (SZ_BufftoBuffDecompress(to.data(), &n, bytes.data() + sizeof all, bytes.size() - sizeof all, &how) != SZ_OK ||
      n != all)
    return "cannot be unpacked (szip)";
  bytes = to.first(all);
  return "";
}
#endif

}  // namespace

#ifdef OOCARRAY_LZ4
bool unpack_lz4_block(std::span<const std::byte> from, std::span<std::byte> to) noexcept {
  return LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to.data()),
                             static_cast<int>(from.size()), static_cast<int>(to.size())) == static_cast<int>(to.size());
}
#endif

std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept {
  std::uint32_t a = 0, b = 0;
  const auto fold = [](std::uint32_t n) { return (n & 0xffff) + (n >> 16); };
  const auto* p = reinterpret_cast<const std::uint8_t*>(bytes.data());
  for (std::size_t left = bytes.size(); left > 1;) {
    std::size_t pairs = std::min<std::size_t>(left / 2, 360);  // the most of which no sum overflows
    left -= 2 * pairs;
    for (; pairs > 0; --pairs, p += 2) b += a += static_cast<std::uint32_t>(p[0]) << 8 | p[1];
    a = fold(a);
    b = fold(b);
  }
  if (bytes.size() % 2 != 0) {
    b += a += static_cast<std::uint32_t>(*p) << 8;
    a = fold(a);
    b = fold(b);
  }
  return fold(b) << 16 | fold(a);
}

bool packs(chunk_filter f) noexcept {
  return f != chunk_filter::shuffle && f != chunk_filter::bitshuffle && f != chunk_filter::fletcher32 &&
         f != chunk_filter::crc32c;
}

bool counts_in_32_bits(chunk_filter f) noexcept {
  return f == chunk_filter::deflate || f == chunk_filter::gzip || f == chunk_filter::bzip2;
}

bool copies(chunk_filter f) noexcept { return f != chunk_filter::fletcher32 && f != chunk_filter::crc32c; }

std::uint64_t most_packed(std::uint64_t bytes) noexcept { return bytes + bytes / 8 + (64 << 10); }

std::uint64_t most_between(const std::vector<chunk_filter>& filters, std::uint64_t chunk) noexcept {
  const auto first = std::find_if(filters.begin(), filters.end(), packs);
  if (first != filters.end() && std::any_of(first + 1, filters.end(), copies)) return most_packed(chunk);
  return chunk + 4 * filters.size();  // checksums
}

std::string undo(chunk_filter f, [[maybe_unused]] std::span<const std::uint32_t> parameters,
                 std::span<const std::byte>& now, std::span<std::byte> next, std::uint32_t element_size) {
  if (counts_in_32_bits(f) && now.size() > UINT32_MAX) return "has 4 GiB or more as it is packed";
  switch (f) {
    case chunk_filter::deflate:
    case chunk_filter::gzip: return inflate(now, next, f);
    case chunk_filter::fletcher32: return check_fletcher32(now);
    case chunk_filter::crc32c: return check_crc32c(now);
    case chunk_filter::shuffle:
      if (now.size() > next.size()) return "is longer than a chunk";
      unshuffle(now, next, element_size);
      now = next.first(now.size());
      return "";
#ifdef OOCARRAY_ZSTD
    case chunk_filter::zstd: return unpack_zstd(now, next);
#endif
#ifdef OOCARRAY_BLOSC
    case chunk_filter::blosc: return unpack_blosc(now, next);
#endif
#ifdef OOCARRAY_LZF
    case chunk_filter::lzf: return unpack_lzf(now, next);
#endif
#ifdef OOCARRAY_LZ4
    case chunk_filter::lz4: return unpack_lz4(now, next);
    case chunk_filter::hdf5_lz4: return unpack_hdf5_lz4(now, next);
    case chunk_filter::bitshuffle_lz4:
#endif
#ifdef OOCARRAY_ZSTD
    case chunk_filter::bitshuffle_zstd:
#endif
    case chunk_filter::bitshuffle: return undo_bitshuffle(f, now, next, element_size);
    case chunk_filter::scale_offset: return undo_scale_offset(parameters, now, next);
#ifdef OOCARRAY_BZIP2
    case chunk_filter::bzip2: return unpack_bzip2(now, next);
#endif
#ifdef OOCARRAY_SZIP
    case chunk_filter::szip: return unpack_szip(parameters, now, next);
#endif
    default: return "is packed by a filter that this build of the library cannot undo";
  }
}

}  // namespace ooc::storage

namespace ooc {

bool can_undo(chunk_filter f) noexcept {
  switch (f) {
#ifndef OOCARRAY_ZSTD
    case chunk_filter::zstd:
    case chunk_filter::bitshuffle_zstd: return false;
#endif
#ifndef OOCARRAY_LZ4
    case chunk_filter::lz4:
    case chunk_filter::hdf5_lz4:
    case chunk_filter::bitshuffle_lz4: return false;
#endif
#ifndef OOCARRAY_BLOSC
    case chunk_filter::blosc: return false;
#endif
#ifndef OOCARRAY_LZF
    case chunk_filter::lzf: return false;
#endif
#ifndef OOCARRAY_BZIP2
    case chunk_filter::bzip2: return false;
#endif
#ifndef OOCARRAY_SZIP
    case chunk_filter::szip: return false;
#endif
    default: return f <= chunk_filter::scale_offset;
  }
}

bool can_apply(chunk_filter f) noexcept {
  return (f < chunk_filter::lzf || f == chunk_filter::lz4 || f == chunk_filter::bzip2) && can_undo(f);
}

}  // namespace ooc
