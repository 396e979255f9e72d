// Geometry against a brute-force model: a table of every byte of every element, where it lies in
// the file and where in memory, made from the definitions and nothing else.

#include "runtime/geometry/array_geometry.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "oocarray/error.hpp"
#include "support/random_source.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::testing::between;

namespace {

/// Offset of an element where tiles of `tile` lie `step` bytes apart; no tile: row-major.
std::uint64_t offset_of(const std::vector<std::uint64_t>& c, const std::vector<std::uint64_t>& extents,
                        const std::vector<std::uint64_t>& tile, std::uint64_t es, std::uint64_t step) {
  std::uint64_t in = 0, out = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const std::uint64_t t = tile.empty() ? extents[k] : tile[k];
    out = out * ceil_div(extents[k], t) + c[k] / t;
    in = in * t + c[k] % t;
  }
  return tile.empty() ? in * es : out * step + in * es;
}

struct model {
  explicit model(const geometry_options& o, std::uint64_t block) {
    std::uint64_t file_tile = o.element_size;
    for (std::uint64_t t : o.file_tile) file_tile *= t;
    std::vector<std::uint64_t> c(o.extents.size());
    for (;;) {
      const std::uint64_t f = offset_of(c, o.extents, o.file_tile, o.element_size, file_tile);
      const std::uint64_t lead = o.tile.empty() ? o.lead : 0;
      const std::uint64_t m = lead + offset_of(c, o.extents, o.tile, o.element_size, block);
      elements.push_back({c, f, m});
      std::size_t k = c.size();
      while (k-- > 0) {
        if (++c[k] < o.extents[k]) break;
        c[k] = 0;
        if (k == 0) return;
      }
    }
  }
  struct element {
    std::vector<std::uint64_t> at;
    std::uint64_t file, memory;
    bool in(const index_box& b) const {
      for (std::size_t k = 0; k < at.size(); ++k)
        if (at[k] < b.lower[k] || at[k] >= b.upper[k]) return false;
      return true;
    }
  };
  std::vector<element> elements;
};

using byte_map = std::map<std::uint64_t, std::uint64_t>;  // memory offset -> file offset

byte_map bytes_of(const request& r, std::uint64_t base) {
  byte_map m;
  r.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (!m.emplace(base + memory + i, file + i).second) FAIL("a byte is transferred twice");
  });
  return m;
}

geometry_options random_options(std::mt19937_64& g) {
  static constexpr std::uint64_t sizes[] = {1, 3, 8, 16, 24, 700, 5000};
  geometry_options o;
  o.element_size = sizes[between(g, 0, 6)];
  const std::size_t rank = between(g, 1, 4);
  std::uint64_t left = o.element_size > 100 ? 60 : 2000;
  for (std::size_t k = 0; k < rank; ++k) {
    const std::uint64_t e =
        between(g, 1, std::max<std::uint64_t>(1, std::min<std::uint64_t>(left, k + 1 == rank ? 2000 : 12)));
    o.extents.push_back(e);
    left = std::max<std::uint64_t>(1, left / e);
  }
  std::shuffle(o.extents.begin(), o.extents.end(), g);
  o.block_bytes = 4096 * between(g, 1, 3);
  if (between(g, 0, 1)) o.lead = between(g, 0, 4095);
  const auto tile = [&] {
    std::vector<std::uint64_t> t;
    for (std::uint64_t e : o.extents) t.push_back(between(g, 1, e + 2));
    return t;
  };
  if (between(g, 0, 1)) o.tile = tile();
  if (between(g, 0, 1)) o.file_tile = between(g, 0, 2) && !o.tile.empty() ? o.tile : tile();
  return o;
}

index_box random_box(std::mt19937_64& g, const geometry_options& o) {
  index_box b;
  for (std::size_t k = 0; k < o.extents.size(); ++k) {
    const bool full = between(g, 0, 2) == 0;
    b.lower[k] = full ? 0 : between(g, 0, o.extents[k] - 1);
    b.upper[k] = full ? o.extents[k] : between(g, b.lower[k] + 1, o.extents[k]);
  }
  return b;
}

std::string describe(const geometry_options& o) {
  return "extents " + to_string(o.extents) + " of " + std::to_string(o.element_size) + " bytes, block " +
         std::to_string(o.block_bytes) + ", tile " + to_string(o.tile) + ", file tile " + to_string(o.file_tile) +
         ", lead " + std::to_string(o.lead);
}

}  // namespace

TEST_CASE("requests, boxes and runs agree with a table of all bytes, for random shapes") {
  OOC_INFO_SEED();
  auto g = ooc::testing::random_source(1);
  for (int round = 0; round < ooc::testing::rounds(150); ++round) {
    const geometry_options o = random_options(g);
    const index_box box = random_box(g, o);
    const array_geometry geo(o);
    const std::uint64_t block = geo.block_bytes();
    INFO("round " << round << ": " << describe(o) << ", box from "
                  << to_string(std::span(box.lower).first(o.extents.size())) << " to "
                  << to_string(std::span(box.upper).first(o.extents.size())));
    const model all(o, block);
    REQUIRE(all.elements.size() == geo.elements());

    std::vector<byte_map> whole(geo.blocks()), outside(geo.blocks());
    std::set<std::uint64_t> file_bytes;
    std::set<block_index> box_blocks;
    std::vector<byte_run> box_runs;
    for (const model::element& e : all.elements) {
      const bool inside = e.in(box);
      for (std::uint64_t i = 0; i < o.element_size; ++i) {
        const block_index b = (e.memory + i) / block;
        if (b >= geo.blocks()) FAIL("an element lies beyond the last block");
        whole[b][e.memory + i] = e.file + i;
        if (!inside) outside[b][e.memory + i] = e.file + i;
        if (inside) box_blocks.insert(b);
        file_bytes.insert(e.file + i);
      }
      if (!inside) continue;
      if (!box_runs.empty() && box_runs.back().offset + box_runs.back().length == e.memory)
        box_runs.back().length += o.element_size;
      else
        box_runs.push_back({e.memory, o.element_size});
    }
    REQUIRE(*file_bytes.rbegin() < geo.file_bytes());

    for (block_index b = 0; b < geo.blocks(); ++b) {
      INFO("block " << b);
      const request r = geo.block_request(b);
      REQUIRE(r.memory_end() <= block);
      REQUIRE(r.file_end() <= geo.file_bytes());
      byte_map got = bytes_of(r, b * block);
      for (const auto& [memory, file] : whole[b]) {
        const auto at = got.find(memory);
        if (at == got.end() || at->second != file) FAIL("wrong bytes at memory offset " << memory);
        got.erase(at);
      }
      for (const auto& [memory, file] : got)
        if (file_bytes.contains(file)) FAIL("more than padding at memory offset " << memory);
      const bool outside_matches = bytes_of(geo.outside_request(b, box), b * block) == outside[b];
      REQUIRE(outside_matches);
      REQUIRE(geo.covers(b, box) == outside[b].empty());
      if (box_blocks.contains(b)) REQUIRE(overlap(geo.bounds(b), box, geo.rank()));
    }

    std::set<block_index> got_blocks;
    for (const block_range& r : geo.blocks_of(box)) {
      if (!got_blocks.empty()) REQUIRE(r.first > *got_blocks.rbegin() + 1);
      for (block_index b = r.first; b < r.last; ++b) got_blocks.insert(b);
    }
    REQUIRE(got_blocks == box_blocks);
    REQUIRE(geo.runs_of(box) == box_runs);
    for (const model::element& e : all.elements) {
      const coordinates at = geo.element_at(e.memory / block, e.memory % block);
      if (!std::equal(e.at.begin(), e.at.end(), at.begin())) FAIL("another element lies there");
    }
    REQUIRE(geo.memory_bytes() > (o.tile.empty() ? all.elements.back().memory : 0));
    REQUIRE(geo.memory_bytes() <= geo.blocks() * block);
  }
}

TEST_CASE("a tile of a row-major file is one nested request, whatever its number of rows") {
  const array_geometry g({.extents = {4096, 4096}, .element_size = 8, .tile = {512, 512}});
  const request r = g.block_request(9);
  REQUIRE(r.entries().size() == 1);
  const nested_request& n = r.entries()[0];
  CHECK(n.file_offset == (512 * 4096 + 512) * 8);
  CHECK(n.run == 4096);
  CHECK(n.depth == 1);
  CHECK(n.levels[0] == stride_level{512, 4096 * 8, 4096});
  CHECK(g.block_bytes() == 2 << 20);
}

TEST_CASE("a block in the file's own order is contiguous") {
  const array_geometry rows({.extents = {100, 1000}, .element_size = 8, .block_bytes = 1 << 16});
  CHECK(rows.block_request(3).entries().size() == 1);
  CHECK(rows.block_request(3).entries()[0].depth == 0);
  CHECK(rows.blocks() == 13);
  CHECK(rows.block_request(12).bytes() == 800000 - 12 * 65536);  // clipped at the file's end
  const array_geometry tiles({.extents = {100, 100}, .element_size = 8, .tile = {64, 64}, .file_tile = {64, 64}});
  for (block_index b = 0; b < 4; ++b) {
    CHECK(tiles.block_request(b).entries().size() == 1);
    CHECK(tiles.block_request(b).entries()[0].depth == 0);
  }
  CHECK(tiles.block_request(1).bytes() == 64 * 64 * 8);
  CHECK(tiles.block_request(3).bytes() == 36 * 64 * 8);  // the rows that exist, with their padding
}

// The matrix of the paper: 9 rows of 12 records of 500 bytes in blocks of ne = (2, 3) records,
// nb = (6, 3).  Its dimension 1 varies fastest, so extents and tile are given in reverse.
TEST_CASE("the paper's matrix of records gives the paper's requests") {
  const array_geometry g({.extents = {9, 12}, .element_size = 500, .tile = {3, 2}});
  REQUIRE(g.blocks() == 18);
  for (std::uint64_t by = 0; by < 3; ++by)
    for (std::uint64_t bx = 0; bx < 6; ++bx) {
      const request expected = request::strided({18000 * by + 1000 * bx, 0, 1000, 3, 6000, 0});
      CHECK(bytes_of(g.block_request(by * 6 + bx), 0) == bytes_of(expected, 0));
    }
  const auto regions = [&](block_index b) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> p;
    g.block_request(b).for_each_run([&](auto file, auto, auto n) { p.emplace_back(file, file + n); });
    return p;
  };
  using list = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  CHECK(regions(2) == list{{2000, 3000}, {8000, 9000}, {14000, 15000}});
  CHECK(regions(8) == list{{20000, 21000}, {26000, 27000}, {32000, 33000}});
}

TEST_CASE("what lies outside Jacobi's target is two border columns") {
  const array_geometry g({.extents = {1024, 1024}, .element_size = 8, .block_bytes = 1 << 20});
  const index_box interior{{1, 1}, {1023, 1023}};
  CHECK(g.outside_request(1, interior).bytes() == 128 * 2 * 8);
  CHECK(!g.covers(1, interior));
  CHECK(g.covers(1, g.whole()));
  CHECK(g.outside_request(1, g.whole()).empty());
}

TEST_CASE("chunks shared by neighbouring runs are counted once") {
  request r;
  nested_request n;
  n.file_offset = 4096 - 8;
  n.run = 16;
  n.depth = 1;
  n.levels[0] = {4, 4096, 16};
  r.add(n);
  CHECK(chunked_bytes(r, 4096, 1 << 20) == 5 * 4096);
  CHECK(chunked_bytes(r, 4096, 8192) > 8192);
}

TEST_CASE("elements that begin within a page of the file begin at the same byte of a page of memory") {
  const array_geometry g({.extents = {1000}, .element_size = 8, .block_bytes = 4096, .lead = 128});
  CHECK(g.blocks() == 2);
  CHECK(bytes_of(g.block_request(0), 0).begin()->first == 128);
  CHECK(g.block_request(0).bytes() == 4096 - 128);
  CHECK(g.block_request(1).entries()[0].file_offset == 4096 - 128);
  CHECK(g.block_request(1).entries()[0].memory_offset == 0);
  CHECK(g.memory_bytes() == 8128);
  CHECK(g.element_at(0, 5)[0] == 0);  // before the first element
  CHECK_THROWS_WITH(array_geometry({.extents = {8}, .element_size = 8, .block_bytes = 4096, .lead = 4096}),
                    Catch::Contains("4096"));
}

TEST_CASE("default tiles are powers of two near the block, within the extents") {
  const auto tile = [](std::vector<std::uint64_t> e, std::uint64_t es) { return default_tile(e, es, 2 << 20); };
  using v = std::vector<std::uint64_t>;
  CHECK(tile({16384, 16384}, 8) == v{512, 512});
  CHECK(tile({16384, 16384}, 4) == v{512, 1024});
  CHECK(tile({1 << 20}, 8) == v{1 << 18});
  CHECK(tile({3, 100000}, 8) == v{4, 65536});
  CHECK(tile({5, 5}, 8) == v{8, 8});
  CHECK(tile({4096, 4096, 4096}, 8) == v{64, 64, 64});
  CHECK(tile({100, 100}, 4 << 20) == v{1, 1});
}

TEST_CASE("a resized array keeps the place of its elements") {
  const array_geometry g(
      {.extents = {10, 7}, .element_size = 8, .max_extents = {40, 7}, .tile = {4, 4}, .file_tile = {8, 2}});
  const array_geometry h = g.resized(std::vector<std::uint64_t>{33, 7});
  CHECK(h.blocks() == 9 * 2);
  CHECK(h.max_blocks() == g.max_blocks());
  CHECK(h.max_blocks() == 10 * 2);
  CHECK(g.memory_order() == h.memory_order());
  CHECK(g.file_order() == h.file_order());
  CHECK(g.file_bytes() == 2 * 4 * 16 * 8);
  // rows 10 to 15 of the second row of tiles
  std::vector<index_box> padding;
  g.for_each_uncovered(h, {}, [&](const index_box& b) { padding.push_back(b); });
  REQUIRE(padding.size() == 4);
  CHECK(padding[1].lower[0] == 10);
  CHECK(padding[1].upper[0] == 16);
  CHECK(padding[1].lower[1] == 2);
  CHECK(padding[1].upper[1] == 4);
}

TEST_CASE("tiles keep their numbers and places whatever extents change, and there is nothing between them") {
  const geometry_options o{
      .extents = {10, 7}, .element_size = 8, .max_extents = {40, 30}, .tile = {4, 4}, .file_tile = {8, 2}};
  const array_geometry g(o);
  CHECK(g.blocks() == 2 * 8 + 1 + 1);  // to tile (2, 1) in rows of 8
  CHECK(g.max_blocks() == 10 * 8);
  CHECK(g.file_bytes() == (1 * 15 + 3 + 1) * 128);
  CHECK(g.block_request(2).empty());
  CHECK(g.bounds(2).lower[1] == 7);
  CHECK(g.bounds(2).upper[1] == 7);
  CHECK(g.covers(2, {{0, 0}, {4, 7}}));
  CHECK(g.element_at(2, 0)[1] == 6);
  CHECK(g.blocks_of(g.whole()) == std::vector<block_range>{{0, 2}, {8, 10}, {16, 18}});
  const array_geometry h = g.resized(std::vector<std::uint64_t>{5, 9});
  CHECK(h.blocks() == 8 + 2 + 1);
  CHECK(g.memory_order() == h.memory_order());
  CHECK(g.file_order() == h.file_order());
  // Columns 4 to 8 and rows 4 on.
  CHECK(blocks_changed(g, h) == std::vector<block_range>{{1, 3}, {8, 11}, {16, 19}});

  // Columns 7 and 8: the first is in a tile that g has, the second was there once.
  std::vector<index_box> boxes;
  const auto collect = [&](const index_box& b) { boxes.push_back(b); };
  g.for_each_uncovered(h, std::vector<std::uint64_t>{10, 9}, collect);
  REQUIRE(boxes.size() == 2);
  CHECK((boxes[0].lower[1] == 7 && boxes[0].upper[1] == 8 && boxes[0].upper[0] == 5));
  CHECK((boxes[1].lower[1] == 8 && boxes[1].upper[1] == 9));
  boxes.clear();
  g.for_each_uncovered(h, std::vector<std::uint64_t>{10, 7}, collect);
  CHECK(boxes.size() == 1);
}

TEST_CASE("sizes that cannot be are refused with the sizes, the limit and the remedy") {
  using Catch::Contains;
  const auto make = [](geometry_options o) { return array_geometry(std::move(o)); };
  const std::uint64_t big = std::uint64_t{1} << 40;
  CHECK_THROWS_WITH(make({.extents = {big, big}, .element_size = 8, .block_bytes = 4096}),
                    Contains("1099511627776, 1099511627776") && Contains("2^63 - 1"));
  CHECK_THROWS_WITH(
      make({.extents = {16}, .element_size = 8, .max_extents = {std::uint64_t{1} << 62}, .block_bytes = 4096}),
      Contains("up to {4611686018427387904}"));
  CHECK_THROWS_WITH(make({.extents = {8, 8}, .element_size = 8, .block_bytes = 5000}),
                    Contains("5000 bytes is not a multiple of 4096") && Contains("8192"));
  CHECK_THROWS_WITH(make({.extents = {8, 0}, .element_size = 8, .block_bytes = 4096}),
                    Contains("{8, 0}") && Contains("at least 1"));
  CHECK_THROWS_WITH(make({.extents = {8, 8}, .element_size = 8, .tile = {4}}), Contains("{4}"));
  CHECK_THROWS_WITH(make({.extents = std::vector<std::uint64_t>(9, 1), .block_bytes = 4096}),
                    Contains("1 to 8 dimensions, not 9"));
  CHECK_THROWS_WITH(make({.extents = {8}, .max_extents = {4}, .block_bytes = 4096}), Contains("max_extents {4}"));
}

TEST_CASE(
    "the runs of a block in the file are as long as its rows, and as the block where orders "
    "agree") {
  const auto run = [](std::vector<std::uint64_t> tile, std::vector<std::uint64_t> file_tile) {
    geometry_options o;
    o.extents = {64, 32, 128};
    o.element_size = 8;
    o.block_bytes = 8192;
    o.tile = std::move(tile);
    o.file_tile = std::move(file_tile);
    return array_geometry(std::move(o)).run_bytes();
  };
  CHECK(run({}, {}) == 8192);
  CHECK(run({4, 4, 16}, {4, 4, 16}) == 4096);
  CHECK(run({4, 4, 16}, {}) == 16 * 8);
  CHECK(run({4, 4, 128}, {}) == 4 * 128 * 8);  // whole rows run on into the next
  CHECK(run({4, 4, 256}, {}) == 4 * 128 * 8);
  CHECK(run({4, 4, 16}, {4, 8, 8}) == 8 * 8);
  CHECK(run({}, {4, 4, 32}) == 32 * 8);
  CHECK(run({}, {4, 4, 128}) == 4 * 128 * 8);
}
