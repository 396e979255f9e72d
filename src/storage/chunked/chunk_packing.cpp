// Filters applied; chunk_filters.cpp undoes them.
#include <isa-l/igzip_lib.h>

#ifdef OOCARRAY_ZSTD
#include <zstd.h>
#endif
#ifdef OOCARRAY_BLOSC
#include <blosc.h>
#endif
#ifdef OOCARRAY_LZ4
#include <lz4.h>
#endif
#ifdef OOCARRAY_BZIP2
#include <bzlib.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "storage/chunked/blosc_memory.hpp"
#include "storage/chunked/chunk_filters.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::storage {
namespace {

using bytes_in = std::span<const std::byte>;
using bytes_out = std::span<std::byte>;

void with_sum(bytes_in& now, bytes_out next, std::uint32_t sum) {
  std::copy(now.begin(), now.end(), next.begin());
  std::memcpy(next.data() + now.size(), &sum, sizeof sum);
  now = next.first(now.size() + sizeof sum);
}

/// `Element`: its bytes, where they are known when this is compiled; 0: `element` has them.
template <std::size_t Element>
void shuffle_elements(const std::byte* from, std::byte* to, std::size_t n, std::size_t element) {
  const std::size_t bytes = Element != 0 ? Element : element;
  for (std::size_t b = 0; b < bytes; ++b)
    for (std::size_t i = 0; i < n; ++i) to[b * n + i] = from[i * bytes + b];
}

void shuffle(bytes_in& now, bytes_out next, std::size_t element) {
  const std::size_t n = now.size() / element;
  const auto by = element == 2   ? shuffle_elements<2>
                  : element == 4 ? shuffle_elements<4>
                  : element == 8 ? shuffle_elements<8>
                                 : shuffle_elements<0>;
  by(now.data(), next.data(), n, element);
  std::copy(now.begin() + static_cast<std::ptrdiff_t>(n * element), now.end(),
            next.begin() + static_cast<std::ptrdiff_t>(n * element));
  now = next.first(now.size());
}

std::string deflate(bytes_in& now, bytes_out next, chunk_filter format, int level) {
  constexpr std::uint32_t memory_of_level[] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = format == chunk_filter::gzip ? IGZIP_GZIP : IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  stream.level = static_cast<std::uint32_t>(std::clamp(((level < 0 ? 6 : level) + 2) / 3, 0, 3));
  std::vector<std::uint8_t> memory(memory_of_level[stream.level]);
  stream.level_buf = memory.data();
  stream.level_buf_size = static_cast<std::uint32_t>(memory.size());
  stream.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(now.data()));
  stream.avail_in = static_cast<std::uint32_t>(now.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(next.data());
  stream.avail_out = static_cast<std::uint32_t>(std::min<std::size_t>(next.size(), UINT32_MAX));
  if (const int e = isal_deflate_stateless(&stream); e != COMP_OK)
    return "cannot be packed (ISA-L says " + std::to_string(e) + ")";
  now = next.first(stream.total_out);
  return "";
}

#ifdef OOCARRAY_ZSTD
std::string pack_zstd(bytes_in& now, bytes_out next, const chunk_packing& how) {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (!context) return "cannot be packed: there is no memory for it (Zstandard)";
  std::size_t n = ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, how.level);
  if (!ZSTD_isError(n)) n = ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, how.checksum ? 1 : 0);
  if (!ZSTD_isError(n)) n = ZSTD_compress2(context.get(), next.data(), next.size(), now.data(), now.size());
  if (ZSTD_isError(n)) return std::string("cannot be packed (Zstandard: ") + ZSTD_getErrorName(n) + ")";
  now = next.first(n);
  return "";
}
#endif

#ifdef OOCARRAY_BLOSC
std::string pack_blosc(bytes_in& now, bytes_out next, const chunk_packing& how, std::uint32_t element_size) {
  if (now.size() > BLOSC_MAX_BUFFERSIZE) return "is longer than Blosc packs";
  const int n = blosc_compress_ctx(how.level, static_cast<int>(how.blosc_shuffle),
                                   how.blosc_element != 0 ? how.blosc_element : element_size, now.size(), now.data(),
                                   next.data(), next.size(), how.blosc_codec.c_str(), how.blosc_block, 1);
  note_blosc_call(now.size());
  if (n <= 0) return "cannot be packed (Blosc with '" + how.blosc_codec + "')";
  now = next.first(static_cast<std::size_t>(n));
  return "";
}
#endif

#ifdef OOCARRAY_LZ4
std::string pack_lz4(bytes_in& now, bytes_out next, int acceleration) {
  if (now.size() > LZ4_MAX_INPUT_SIZE) return "is longer than LZ4 packs";
  const auto size = static_cast<std::uint32_t>(now.size());
  std::memcpy(next.data(), &size, sizeof size);
  const int n =
      LZ4_compress_fast(reinterpret_cast<const char*>(now.data()), reinterpret_cast<char*>(next.data() + sizeof size),
                        static_cast<int>(now.size()), static_cast<int>(next.size() - sizeof size), acceleration);
  if (n <= 0) return "cannot be packed (LZ4)";
  now = next.first(sizeof size + static_cast<std::size_t>(n));
  return "";
}
#endif

#ifdef OOCARRAY_BZIP2
std::string pack_bzip2(bytes_in& now, bytes_out next, int level) {
  auto n = static_cast<unsigned>(std::min<std::size_t>(next.size(), UINT32_MAX));
  auto* const from = const_cast<char*>(reinterpret_cast<const char*>(now.data()));
  const int e = BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(next.data()), &n, from,
                                         static_cast<unsigned>(now.size()), std::clamp(level, 1, 9), 0, 0);
  if (e != BZ_OK) return "cannot be packed (bzip2 says " + std::to_string(e) + ")";
  now = next.first(n);
  return "";
}
#endif

}  // namespace

std::string apply(chunk_filter f, [[maybe_unused]] const chunk_packing& how, bytes_in& now, bytes_out next,
                  std::uint32_t element_size) {
  if (counts_in_32_bits(f) && now.size() > UINT32_MAX) return "is longer than its filter packs";
  switch (f) {
    case chunk_filter::deflate:
    case chunk_filter::gzip: return deflate(now, next, f, how.level);
    case chunk_filter::fletcher32: return with_sum(now, next, fletcher32(now)), "";
    case chunk_filter::crc32c: return with_sum(now, next, crc32c(now.data(), now.size())), "";
    case chunk_filter::shuffle: return shuffle(now, next, element_size), "";
#ifdef OOCARRAY_ZSTD
    case chunk_filter::zstd: return pack_zstd(now, next, how);
#endif
#ifdef OOCARRAY_BLOSC
    case chunk_filter::blosc: return pack_blosc(now, next, how, element_size);
#endif
#ifdef OOCARRAY_LZ4
    case chunk_filter::lz4: return pack_lz4(now, next, how.level);
#endif
#ifdef OOCARRAY_BZIP2
    case chunk_filter::bzip2: return pack_bzip2(now, next, how.level);
#endif
    default: return "is packed by a filter that this build of the library cannot apply";
  }
}

}  // namespace ooc::storage
