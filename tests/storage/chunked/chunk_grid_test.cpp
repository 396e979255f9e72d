// Tests of the places of a row-major array's bytes in chunks.
#include "storage/chunked/chunk_grid.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "support/random_seed.hpp"

using namespace ooc::storage;
using namespace ooc::testing;

namespace {

using numbers = std::vector<std::uint64_t>;

struct expected_place {
  std::uint64_t chunk, in_chunk;
  bool operator==(const expected_place&) const = default;
};

/// The place of byte `at`, digit by digit.
expected_place place_of(const numbers& extents, const numbers& chunk, std::uint64_t element, std::uint64_t at) {
  const std::uint64_t within = at % element;
  numbers i(extents.size());
  std::uint64_t n = at / element;
  for (std::size_t d = extents.size(); d-- > 0; n /= extents[d]) i[d] = n % extents[d];
  expected_place p{0, 0};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    p.chunk = p.chunk * ((extents[d] + chunk[d] - 1) / chunk[d]) + i[d] / chunk[d];
    p.in_chunk = p.in_chunk * chunk[d] + i[d] % chunk[d];
  }
  p.in_chunk = p.in_chunk * element + within;
  return p;
}

}  // namespace

TEST_CASE("each byte of any range lies in one piece of one chunk, where its index says") {
  std::mt19937_64 random(random_seed("chunk_grid"));
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t element = between(random, 1, 9);
    numbers extents(between(random, 1, 4)), chunk(extents.size());
    std::uint64_t bytes = element;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      extents[d] = between(random, 1, 9);
      chunk[d] = between(random, 1, 11);
      bytes *= extents[d];
    }
    CAPTURE(extents, chunk, element);
    const chunk_grid grid(extents, chunk, static_cast<std::uint32_t>(element));
    const std::uint64_t begin = between(random, 0, bytes - 1), end = between(random, begin, bytes);
    CAPTURE(begin, end);
    std::set<std::uint64_t> touched, found;
    for (std::uint64_t at = begin; at < end; ++at) touched.insert(place_of(extents, chunk, element, at).chunk);
    std::vector<bool> seen(bytes);
    grid.for_each_chunk(begin, end, [&](std::uint64_t c) {
      CHECK(found.insert(c).second);
      grid.for_each_piece(c, begin, end, [&](const chunk_grid::piece& p) {
        for (std::uint64_t i = 0; i < p.bytes; ++i) {
          REQUIRE((p.in_array + i >= begin && p.in_array + i < end && !seen[p.in_array + i]));
          seen[p.in_array + i] = true;
          REQUIRE(place_of(extents, chunk, element, p.in_array + i) == expected_place{c, p.in_chunk + i});
        }
        return true;
      });
    });
    CHECK(found == touched);
    CHECK(std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(end - begin));
    std::uint64_t all = 1, whole = element;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      all *= (extents[d] + chunk[d] - 1) / chunk[d];
      whole *= chunk[d];
    }
    CHECK(grid.chunks() == all);
    CHECK(grid.chunk_bytes() == whole);
    CHECK(grid.chunks_in_use_together() <= all);
  }
}

TEST_CASE("the place of a chunk is the index of its first element") {
  const chunk_grid grid({70, 301, 400}, {8, 64, 100}, 4);
  CHECK(grid.place_of(0) == "[0, 0, 0]");
  CHECK(grid.place_of(1) == "[0, 0, 100]");
  CHECK(grid.place_of(4) == "[0, 64, 0]");
  CHECK(grid.place_of(20 + 6) == "[8, 64, 200]");
  CHECK(grid.chunks_in_use_together() == 20);
  CHECK(chunk_grid({70, 301, 400}, {1, 301, 400}, 4).chunks_in_use_together() == 1);
  CHECK(chunk_grid({70, 301, 400}, {1, 64, 400}, 4).chunks_in_use_together() == 1);
}
