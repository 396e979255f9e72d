#include "storage/layout/box_requests.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "oocarray/error.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;

namespace {

/// Byte offset of an element, from the formula in element_order.hpp.
std::uint64_t offset_of(const array_description& a, const index& i) {
  std::uint64_t tile = 0, inside = 0, tile_elements = 1;
  for (std::size_t d = 0; d < i.size(); ++d) {
    const std::uint64_t t = a.tile.empty() ? a.extents[d] : a.tile[d];
    const std::uint64_t most = has_reserved_grid(a) ? a.max_extents[d] : a.extents[d];
    tile = tile * ((most + t - 1) / t) + i[d] / t;
    inside = inside * t + i[d] % t;
    tile_elements *= t;
  }
  return (tile * tile_elements + inside) * a.element_size;
}

bool advance(index& i, const index& lower, const index& upper) {
  for (std::size_t d = i.size(); d-- > 0;) {
    if (++i[d] < upper[d]) return true;
    i[d] = lower[d];
  }
  return false;
}

array_description random_array(std::mt19937_64& random) {
  array_description a;
  a.element_size = static_cast<std::uint32_t>(1 + random() % 9);
  const std::size_t rank = 1 + random() % 4;
  const bool tiled = random() % 2 == 0;
  for (std::size_t d = 0; d < rank; ++d) {
    a.extents.push_back(1 + random() % 9);
    if (tiled) a.tile.push_back(1 + random() % 5);
  }
  if (tiled && random() % 2 == 0)
    for (const std::uint64_t e : a.extents) a.max_extents.push_back(e + random() % 9);
  return a;
}

}  // namespace

TEST_CASE("a box names each of its bytes once, where the formula says") {
  const std::uint64_t seed = ooc::testing::random_seed("array_boxes");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const array_description a = random_array(random);
    index lower, upper;
    for (const std::uint64_t e : a.extents) {
      lower.push_back(random() % e);
      upper.push_back(lower.back() + 1 + random() % (e - lower.back()));
    }
    std::vector<std::uint64_t> expected, found;  // file offset of each memory byte
    index i = lower;
    do {
      for (std::uint64_t b = 0; b < a.element_size; ++b) expected.push_back(offset_of(a, i) + b);
    } while (advance(i, lower, upper));
    found.assign(expected.size(), ~std::uint64_t{0});
    const request r = box_request(a, lower, upper);
    REQUIRE(r.bytes() == expected.size());
    REQUIRE(r.file_end() <= array_file_bytes(a));
    r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t length) {
      for (std::uint64_t b = 0; b < length; ++b) found[memory + b] = at + b;
    });
    if (found != expected) FAIL("seed " << seed << " round " << round);
  }
}

TEST_CASE("slabs cover the array once, in order, inside the bound") {
  const std::uint64_t seed = ooc::testing::random_seed("slabs");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    INFO("seed " << seed << " round " << round);
    const array_description a = random_array(random);
    const std::uint64_t bound = a.element_size + random() % 2000;
    const index zero(a.extents.size(), 0);
    index next = zero;
    std::uint64_t bytes = 0;
    for_each_slab(a, bound, [&](const index& lower, const index& upper, std::uint64_t n) {
      REQUIRE(n <= bound);
      REQUIRE(box_request(a, lower, upper).bytes() == n);
      index i = lower;
      do {
        REQUIRE(i == next);
        advance(next, zero, a.extents);
      } while (advance(i, lower, upper));
      bytes += n;
    });
    REQUIRE(bytes == array_bytes(a));
  }
}

TEST_CASE("a tile of 512 x 512 is one strided request, or one region in a tiled file") {
  array_description a;
  a.element_size = 8;
  a.extents = {16384, 16384};
  const request strided = box_request(a, {512, 1024}, {1024, 1536});
  REQUIRE(strided.entries().size() == 1);
  CHECK(strided.entries()[0].runs() == 512);
  a.tile = {512, 512};
  const request whole = box_request(a, {512, 1024}, {1024, 1536});
  REQUIRE(whole.entries().size() == 1);
  CHECK(whole.entries()[0].runs() == 1);
}

TEST_CASE("a box of many dimensions is one request where they continue each other") {
  array_description a;
  a.element_size = 8;
  a.extents.assign(32, 2);
  index lower(32, 0), upper(32, 2);
  upper[3] = 1;
  const request r = box_request(a, lower, upper);
  REQUIRE(r.entries().size() == 1);
  CHECK(r.entries()[0].runs() == 8);
  CHECK(r.bytes() == (std::uint64_t{8} << 31));
  for (std::size_t d = 0; d < 32; d += 2) upper[d] = 1;  // no two of them do
  CHECK_THROWS_AS(box_request(a, lower, upper), usage_error);
}

TEST_CASE("arrays that cannot be are refused") {
  array_description a;
  a.element_size = 8;
  a.extents = {std::uint64_t{1} << 40, std::uint64_t{1} << 30};
  CHECK_THROWS_AS(array_file_bytes(a), usage_error);
  a.extents = {10, 0};
  CHECK(array_file_bytes(a) == 0);
  a.extents = {10, 10};
  a.tile = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  CHECK_THROWS_AS(array_file_bytes(a), usage_error);
  a.tile = {4};
  CHECK_THROWS_AS(array_file_bytes(a), usage_error);
  a.tile = {4, 0};
  CHECK_THROWS_AS(array_file_bytes(a), usage_error);
  a.tile.clear();
  CHECK_THROWS_AS(box_request(a, {0, 0}, {10, 11}), usage_error);
  CHECK_THROWS_AS(box_request(a, {5, 0}, {4, 1}), usage_error);
  CHECK_THROWS_AS(box_request(a, {0}, {1}), usage_error);
}

TEST_CASE("tiles are where docs/disk-format.md says, with limits of extents and without") {
  array_description a;
  a.element_size = 4;
  a.extents = {70, 45, 33};
  a.tile = {16, 16, 8};
  const auto offset = [&] { return box_request(a, {17, 3, 9}, {18, 4, 10}).entries()[0].file_offset; };
  CHECK(offset() == 131'684);
  CHECK(array_file_bytes(a) == 75 * 8192);
  a.max_extents = {140, 100, 80};
  CHECK(offset() == 582'244);
  CHECK(array_file_bytes(a) == 2'498'560);
  CHECK(array_stored_bytes(a) == 75 * 8192);
}

TEST_CASE("the tiles that are part of an array are found among those that are not") {
  const std::uint64_t seed = ooc::testing::random_seed("array_boxes");
  std::mt19937_64 random(seed);
  INFO("replay with OOC_TEST_SEED=" << seed);
  for (int round = 0; round < 300; ++round) {
    const array_description a = random_array(random);
    if (!has_reserved_grid(a)) continue;
    std::uint64_t tile_bytes = a.element_size;
    for (const std::uint64_t t : a.tile) tile_bytes *= t;
    std::vector<bool> expected(array_file_bytes(a) / tile_bytes), found(expected.size());
    const index zero(a.extents.size(), 0);
    index i = zero;
    do {
      expected[offset_of(a, i) / tile_bytes] = true;
    } while (advance(i, zero, a.extents));
    for (std::uint64_t at = random() % 2 * tile_bytes;;) {
      const byte_interval next = next_tiles(a, at);
      if (at != 0 && at < next.begin) CHECK_FALSE(expected[at / tile_bytes]);
      if (next.begin == next.end) break;
      for (std::uint64_t t = next.begin / tile_bytes; t < next.end / tile_bytes; ++t) found[t] = true;
      at = next.end;
    }
    found[0] = true;
    CHECK(found == expected);
  }
}
