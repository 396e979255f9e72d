// placement::by_rank: which stripes hold the parts of the ranks, and on which nodes.
#include "runtime/geometry/stripes_by_rank.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "oocarray/error.hpp"
#include "runtime/geometry/partition.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::detail;
using testing::between;
using nodes_near = std::vector<std::vector<std::uint64_t>>;

namespace {

array_geometry rows_of(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t block = 4096) {
  return array_geometry({.extents = {rows, row_bytes / 8}, .element_size = 8, .block_bytes = block});
}

/// One node for each rank, the first `first`.
nodes_near in_order(std::uint64_t ranks, std::uint64_t nodes, std::uint64_t first = 0) {
  nodes_near near;
  for (std::uint64_t r = 0; r < ranks; ++r) near.push_back({(first + r) % nodes});
  return near;
}

array_geometry random_geometry(std::mt19937_64& g) {
  geometry_options o;
  o.element_size = std::uint64_t{1} << between(g, 0, 4);
  for (std::size_t rank = between(g, 1, 3), k = 0; k < rank; ++k) o.extents.push_back(between(g, 1, k == 0 ? 400 : 40));
  if (between(g, 0, 1) == 0)
    for (std::size_t k = 0; k < o.extents.size(); ++k) o.file_tile.push_back(std::uint64_t{1} << between(g, 0, 3));
  if (between(g, 0, 1) == 0)
    for (std::size_t k = 0; k < o.extents.size(); ++k) o.tile.push_back(std::uint64_t{1} << between(g, 0, 3));
  o.block_bytes = 4096 * between(g, 1, 3);
  return array_geometry(o);
}

}  // namespace

TEST_CASE("every element of a rank's part is in the stripe of that rank") {
  const std::uint64_t seed = testing::random_seed("stripes by rank");
  std::mt19937_64 random(seed);
  int placed = 0;
  for (int n = 0; n < 400; ++n) {
    INFO("OOC_TEST_SEED=" << seed << ", case " << n);
    const array_geometry g = random_geometry(random);
    const std::uint64_t ranks = between(random, 1, 9);
    if (equal_parts(g, ranks) == 0) {
      CHECK(rows_together(g) > 1);
      continue;
    }
    ++placed;
    const auto nodes = static_cast<std::uint32_t>(ranks);
    const striping s = stripes_by_rank("a", g, in_order(ranks, ranks), nodes);
    std::uint64_t next = 0, wrong = 0;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      const index_box part = part_of(g, s, r, ranks);
      CHECK(part.lower[0] == next);
      next = part.upper[0];
      for (coordinates c{part.lower}; c[0] < part.upper[0]; ++c[0]) {
        coordinates last = part.upper;
        for (std::size_t k = 0; k < g.rank(); ++k) last[k] = part.upper[k] - 1;
        last[0] = c[0];
        wrong += g.file_order().offset(c) / s.sf != r;
        wrong += g.file_order().offset(last) / s.sf != r;
      }
      CHECK(part.upper[0] - part.lower[0] <=
            std::max(g.extents()[0] * 5 / 4 / ranks, (g.extents()[0] + ranks - 1) / ranks));
    }
    CHECK(next == g.extents()[0]);
    CHECK(wrong == 0);
  }
  CHECK(placed > 200);
}

TEST_CASE("parts end where blocks end, else where pages of the file end, if that is about even") {
  CHECK(equal_parts(rows_of(1024, 512, 8192), 4) == 256);
  CHECK(equal_parts(rows_of(1000, 8000, 2 << 20), 4) == 256);  // 64 rows are 125 pages
  CHECK(equal_parts(rows_of(10, 8000, 2 << 20), 4) == 3);      // any row
  CHECK(equal_parts(rows_of(3, 8, 4096), 7) == 1);
}

TEST_CASE("stripes of the usual size leave the parts where blocks end") {
  const array_geometry g = rows_of(1001, 512);
  const striping usual{.sn = 0, .nn = 4, .sf = 65536};
  std::vector<std::uint64_t> ends;
  for (std::uint64_t r = 0; r < 4; ++r) ends.push_back(part_of(g, usual, r, 4).upper[0]);
  CHECK(ends == std::vector<std::uint64_t>{248, 504, 752, 1001});
}

TEST_CASE("nodes that follow each other may begin anywhere and come again") {
  const array_geometry g = rows_of(840, 512);
  const std::uint64_t part = equal_parts(g, 4) * 512;
  CHECK(stripes_by_rank("a", g, in_order(4, 4), 4) == striping{0, 4, part});
  CHECK(stripes_by_rank("a", g, in_order(4, 6, 5), 6).sn == 5);
  // Two ranks on each of three hosts, dealt out in turns.
  CHECK(stripes_by_rank("a", g, in_order(6, 3), 3).nn == 3);
  // All on one host: every order fits, and the nodes are used evenly.
  CHECK(stripes_by_rank("a", g, nodes_near(4, {0, 1, 2, 3}), 4) == striping{0, 4, part});
  // A host with the first of three nodes only.
  CHECK(stripes_by_rank("a", g, nodes_near(2, {0}), 3) == striping{0, 1, equal_parts(g, 2) * 512});
  // A rank without rows needs no node.
  nodes_near near = in_order(3, 3);
  near.push_back({});
  CHECK(stripes_by_rank("a", rows_of(3, 512), near, 3).sf == 512);
}

TEST_CASE("what cannot be placed is refused with the reason and the remedy") {
  const array_geometry g = rows_of(840, 512);
  const auto reason = [&](const array_geometry& of, const nodes_near& near, std::uint32_t nodes) {
    try {
      stripes_by_rank("plate/a", of, near, nodes);
    } catch (const usage_error& e) {
      CHECK(e.code() == errc::invalid_request);
      return std::string(e.what());
    }
    FAIL("nothing was thrown");
    return std::string();
  };
  nodes_near near = in_order(4, 4);
  near[2].clear();
  CHECK_THAT(reason(g, near, 4), Catch::Contains("'plate/a'") && Catch::Contains("on the host of rank 2"));
  // Two ranks on each of two hosts, one after the other.
  CHECK_THAT(reason(g, {{0}, {0}, {1}, {1}}, 2),
             Catch::Contains("rank 1: {0}, rank 2: {1}") && Catch::Contains("in the order"));
  CHECK_THAT(reason(g, {{0}, {2}, {1}}, 3), Catch::Contains("rank 1: {2}"));
  const array_geometry tiled({.extents = {100, 64}, .element_size = 8, .block_bytes = 4096, .file_tile = {64, 64}});
  CHECK_THAT(reason(tiled, in_order(4, 4), 4), Catch::Contains("within tiles of the file"));
}
