// Tests of what is made of the bytes of a chunk, by what makes them what they were.
#include "storage/chunked/chunk_encoder.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "storage/chunked/chunk_decoder.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

namespace {

using bytes = std::vector<std::byte>;

bytes some(std::size_t n, bool compressible, std::mt19937_64& random) {
  bytes b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>(compressible ? i / 100 : random());
  return b;
}

}  // namespace

TEST_CASE("what is encoded is decoded to what it was") {
  std::mt19937_64 random(random_seed("chunk_encoder"));
  const std::vector<chunk_filter> every{chunk_filter::deflate, chunk_filter::shuffle, chunk_filter::fletcher32,
                                        chunk_filter::gzip,    chunk_filter::crc32c,  chunk_filter::zstd,
                                        chunk_filter::blosc};
  for (int round = 0; round < 300; ++round) {
    file_chunks c{.dataset = "", .extents = {}, .filters = {}, .table = {}, .fill = {}};
    const std::size_t rank = 1 + random() % 3;
    for (std::size_t d = 0; d < rank; ++d) c.extents.push_back(1 + random() % 30);
    if (random() % 2 == 0) {
      c.stored_order.resize(rank);
      std::iota(c.stored_order.begin(), c.stored_order.end(), 0U);
      std::shuffle(c.stored_order.begin(), c.stored_order.end(), random);
    }
    for (std::size_t n = random() % 4; n > 0; --n) {
      const chunk_filter f = every[random() % every.size()];
      if (!can_apply(f)) continue;
      c.filters.push_back(f);
      c.packing.push_back({.level = static_cast<int>(random() % 11) - 1,
                           .checksum = random() % 2 == 0,
                           .blosc_codec = random() % 2 == 0 ? "lz4" : "zstd",
                           .blosc_shuffle = static_cast<chunk_packing::shuffling>(random() % 3)});
      if (f == chunk_filter::blosc) c.packing.back().level = static_cast<int>(random() % 10);
    }
    const std::uint32_t element = 1U << random() % 4;
    std::size_t n = element;
    for (const std::size_t e : c.extents) n *= e;
    chunk_encoder encoder(c, element);
    chunk_decoder decoder(c, element);
    for (int again = 0; again < 2; ++again) {
      const bytes was = some(n, again == 0, random);
      REQUIRE(encoder.encode(was) == "");
      const auto stored = encoder.stored();
      std::memcpy(decoder.stored(stored.size()).data(), stored.data(), stored.size());
      bytes is(n);
      REQUIRE(decoder.decode(0, is) == "");
      REQUIRE(is == was);
    }
  }
}

TEST_CASE("what is packed is shorter where its elements repeat") {
  for (const chunk_filter f : {chunk_filter::deflate, chunk_filter::gzip, chunk_filter::zstd, chunk_filter::blosc}) {
    if (!can_apply(f)) continue;
    chunk_encoder encoder({.dataset = "", .extents = {10000}, .filters = {f}, .table = {}, .fill = {}}, 4);
    REQUIRE(encoder.encode(bytes(40000)) == "");
    CHECK(encoder.stored().size() < 1000);
  }
  CHECK_FALSE(can_apply(chunk_filter::lzf));
}

TEST_CASE("a codec that Blosc does not have is an error that names it") {
  if (!can_apply(chunk_filter::blosc)) return;
  chunk_encoder encoder({.dataset = "",
                         .extents = {100},
                         .filters = {chunk_filter::blosc},
                         .table = {},
                         .fill = {},
                         .packing = {{.blosc_codec = "lz5"}}},
                        4);
  CHECK(encoder.encode(bytes(400)) == "cannot be packed (Blosc with 'lz5')");
}
