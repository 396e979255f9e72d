// overwrite(): correct in every order, and blocks are not read for nothing.

#include <catch2/catch.hpp>
#include <numeric>

#include "runtime/array/array_source.hpp"
#include "runtime/pager/pager.hpp"
#include "support/faulty_io_service.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t n = 256;  // 512 KiB of doubles: 128 blocks of two rows

/// An array whose element k is k + 1, none of it in memory.
struct prepared {
  explicit prepared(std::uint64_t blocks = 64) : rt(memory(nodes.staging() + blocks * 4_KiB, 1)) {
    for (std::size_t k = 0; k < n * n; ++k) a.data()[k] = static_cast<double>(k + 1);
    a.writeback();
    a.invalidate();
    before = s.stats();
    loads_before = rt.stats();
  }
  std::uint64_t bytes_read() const { return (s.stats() - before).bytes_read; }

  test_store nodes{store_kind::in_memory};
  store s = nodes.handle();
  runtime rt;
  ooc_array<double, 2> a{rt, s, "a", create, {n, n}, {.block = 4_KiB}};
  io_stats before;
  runtime_stats loads_before;
};

}  // namespace

TEST_CASE("a target that is overwritten whole is never read") {
  prepared p;
  p.a.overwrite(p.a.whole());
  for (std::size_t k = 0; k < n * n; ++k) p.a.data()[k] = -1;
  CHECK(p.bytes_read() == 0);
  CHECK(p.rt.stats().loads_avoided - p.loads_before.loads_avoided == 128);
  p.a.writeback();
  p.a.invalidate();
  CHECK(std::count(p.a.begin(), p.a.end(), -1) == n * n);
}

TEST_CASE("of Jacobi's target only what the border columns need is read") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 2_MiB, 1));
  constexpr std::size_t rows = 8, cols = 16384;  // a row of 128 KiB, two in a block
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {rows, cols}, {.block = 256_KiB}};
  for (std::size_t k = 0; k < rows * cols; ++k) a.data()[k] = static_cast<double>(k + 1);
  a.writeback();
  a.invalidate();
  const io_stats before = nodes.handle().stats();
  const box<2> interior{{1, 1}, {rows - 1, cols - 1}};
  a.overwrite(interior);
  for (std::size_t i = 1; i + 1 < rows; ++i)
    for (std::size_t j = 1; j + 1 < cols; ++j) a[i][j] = 0;
  // The inner blocks: two columns; the first and the last block have a row outside, half of them.
  const std::uint64_t read = (nodes.handle().stats() - before).bytes_read;
  CHECK(read < 2 * 256_KiB + 100);
  CHECK(read >= 2 * 128_KiB);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j)
      if (a[i][j] != (interior.contains({i, j}) ? 0 : static_cast<double>(i * cols + j + 1)))
        FAIL("wrong element " << i << ", " << j);
}

TEST_CASE("a read before the writes loads everything") {
  prepared p;
  p.a.overwrite({{0, 0}, {n, n / 2}});
  const auto& c = p.a;
  CHECK(c[4][n - 1] == 5 * n);  // outside the box
  CHECK(c[4][0] == 4 * n + 1);  // a broken promise, on a block that is loaded already
  p.a[4][0] = 3;
  CHECK(c[4][1] == 4 * n + 2);
}

TEST_CASE("a block that was evicted after its promise was used is loaded whole") {
  prepared p(16);
  p.a.overwrite(p.a.whole());
  p.a[0][0] = -5;
  for (std::size_t i = 2; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) p.a[i][j] = 1;
  CHECK(p.a[0][0] == -5);
  p.a[0][1] = -6;
  CHECK(p.a[0][0] == -5);
}

TEST_CASE("of several boxes the latest that touches a block counts, and used ones do not return") {
  prepared p(16);
  const auto sweep = [&](std::size_t first, std::size_t last, std::size_t from, std::size_t to, double v) {
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = from; j < to; ++j) p.a[i][j] = v;
  };
  // Left halves, then right halves: the second promise must not bring back the first.
  p.a.overwrite({{0, 0}, {n, n / 2}});
  sweep(0, n, 0, n / 2, 7);
  p.a.overwrite({{0, n / 2}, {n, n}});
  sweep(0, n, n / 2, n, 8);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) REQUIRE(p.a[i][j] == (j < n / 2 ? 7 : 8));

  // Two at once, row by row, odd rows of blocks that the even rows' box touches as well.
  p.a.writeback();
  p.a.invalidate();
  p.a.overwrite({{0, 0}, {1, n}});
  p.a.overwrite({{1, 0}, {2, n / 4}});
  sweep(0, 1, 0, n, 1);
  sweep(1, 2, 0, n / 4, 2);
  CHECK(p.a[0][n - 1] == 1);
  CHECK(p.a[1][0] == 2);
  CHECK(p.a[1][n / 4] == 7);
  CHECK(p.a[1][n - 1] == 8);
}

TEST_CASE("promises taken back have no effect") {
  prepared p;
  p.a.overwrite(p.a.whole());
  p.a.clear_overwrite();
  p.a[10][10] = 0;
  CHECK(p.a[10][11] == 10 * n + 12);
  CHECK(p.bytes_read() == 4_KiB);
}

TEST_CASE("hundreds of promises are remembered as far as they go, and never wrong") {
  prepared p(16);
  for (std::size_t i = 0; i < n; i += 2) p.a.overwrite({{i, 0}, {i + 2, n}});
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) p.a[i][j] = static_cast<double>(i);
  CHECK(p.bytes_read() == 64 * 4_KiB);  // the 64 latest boxes count, the older blocks are read
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) REQUIRE(p.a[i][j] == static_cast<double>(i));
}

TEST_CASE("write_all keeps a promise for its box: the rest may be written by element") {
  prepared p;
  const box<2> promised = GENERATE(box<2>{{0, 0}, {8, n}}, box<2>{{1, 10}, {7, n - 10}});
  const box<2> part = GENERATE(box<2>{{2, 0}, {4, n}}, box<2>{{3, 20}, {5, 100}});
  p.a.overwrite(promised);
  SECTION("none of it in memory") {}
  SECTION("some of it written by element before") {
    p.a[3][200] = -3;
    p.a[5][15] = -3;
  }
  SECTION("some of it on its way, without what was promised") { p.a.prefetch(promised); }
  std::vector<double> values(part.size(), -1);
  p.a.write_all(part, values);
  for (std::size_t i = promised.lower[0]; i < promised.upper[0]; ++i)
    for (std::size_t j = promised.lower[1]; j < promised.upper[1]; ++j)
      if (!part.contains({i, j})) p.a[i][j] = -2;
  std::size_t wrong = 0;
  const auto look = [&] {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        wrong += std::as_const(p.a)[i][j] != (part.contains({i, j})       ? -1
                                              : promised.contains({i, j}) ? -2
                                                                          : i * n + j + 1.0);
  };
  look();
  p.a.writeback();
  p.a.invalidate();
  look();
  CHECK(wrong == 0);
}

TEST_CASE("what read_all has read of a promised box stays, as what an element access has read") {
  prepared p;
  p.a.overwrite({{0, 0}, {4, n}});
  std::vector<double> read(10);
  p.a.read_all({{1, 0}, {2, 10}}, read);
  CHECK(read[3] == n + 4);
  p.a[1][200] = -1;  // the same block
  CHECK(p.a[1][3] == n + 4);
  const std::uint64_t before = p.bytes_read();
  p.a[2][0] = -1;  // another one, whose promise stands
  CHECK(p.bytes_read() == before);
}

TEST_CASE("an element of a promised box that was not written is zero, or old, in each of its blocks") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 64 * 4_KiB, 0));
  array_options<triple> o;
  o.block = 4_KiB;  // 170 elements and two thirds of one
  ooc_array<triple, 1> a{rt, nodes.handle(), "a", create, {1000}, o};
  const triple old{0x01010101, {0x0101, 0x0101}, 1.5, 2.5F, 0x01010101};
  std::fill(a.begin(), a.end(), old);
  a.writeback();
  a.invalidate();
  a.overwrite(a.whole());
  a[10] = {};
  const std::size_t cut = 4096 / sizeof(triple);
  CHECK(std::as_const(a)[cut - 1] == triple{});  // of the block that was written to
  CHECK(std::as_const(a)[cut + 1] == old);       // of one that was not
  const triple both = std::as_const(a)[cut];
  const std::size_t within = 4096 - cut * sizeof(triple);
  REQUIRE(within > 0);
  const auto bytes = [](const triple& t) { return std::as_bytes(std::span(&t, 1)); };
  for (std::size_t i = 0; i < sizeof(triple); ++i) CHECK(bytes(both)[i] == (i < within ? std::byte{0} : bytes(old)[i]));
  CHECK(std::as_const(a)[11] == triple{});
  a.writeback();
  a.invalidate();
  CHECK(std::as_const(a)[11] == triple{});  // and is stored as such
}

TEST_CASE("a promise that was refused is none, beside one that was made before") {
  const memory_store memory_nodes(1);
  const auto node = std::make_shared<storage::faulty_io_service>(memory_nodes.nodes[0]);
  const store s(std::make_shared<storage::store_core>("memory:", "test", memory_nodes.metadata,
                                                      storage::striped_file::nodes{node}));
  runtime rt(memory(1_MiB, 1));
  constexpr std::size_t in_block = 64_KiB / 8, count = 64 * in_block;
  ooc_array<double, 1> a{rt, s, "a", create, {count}, {.block = 64_KiB, .pattern = access_pattern::random}};
  for (std::size_t k = 0; k < count; ++k) a[k] = static_cast<double>(k + 1);
  a.writeback();
  a.invalidate();
  a[in_block + 5] = -5;  // in a grain, which the next promise but one wants written
  a.overwrite({{0}, {10}});
  node->add({.call = storage::io_kind::write, .error = std::make_error_code(std::errc::io_error)});
  bool refused = false;
  try {
    a.overwrite({{10}, {2 * in_block}});
  } catch (const io_error&) {
    refused = true;
  }
  node->clear();
  for (std::size_t k = 0; k < 10; ++k) a[k] = -1;
  std::size_t wrong = 0;
  for (std::size_t k = 10; k < 2 * in_block; ++k)
    wrong += std::as_const(a)[k] != (k == in_block + 5 ? -5 : static_cast<double>(k + 1));
  CHECK(wrong == 0);
  CHECK((refused || !rt.pager().grains().possible()));
}

TEST_CASE("a source knows when nothing is to be loaded, without locks") {
  using namespace ooc::detail;
  array_source source(array_geometry({.extents = {64, 512}, .element_size = 8, .block_bytes = 8192}));
  CHECK(!source.nothing_to_load(3, load_part::outside_promise));
  source.promise({{4, 0}, {10, 512}});
  CHECK(!source.nothing_to_load(1, load_part::outside_promise));
  CHECK(source.nothing_to_load(2, load_part::outside_promise));
  CHECK(!source.nothing_to_load(2, load_part::whole));
  CHECK(source.nothing_to_load(4, load_part::outside_promise));
  CHECK(!source.nothing_to_load(5, load_part::outside_promise));
  source.promise({{0, 0}, {5, 512}});  // covers half of block 2, which now counts
  CHECK(source.nothing_to_load(1, load_part::outside_promise));
  CHECK(!source.nothing_to_load(2, load_part::outside_promise));
  source.clear_promises();
  CHECK(!source.nothing_to_load(4, load_part::outside_promise));
}
