// Blocks that come in with one request because they lie side by side in the store.
#include <catch2/catch.hpp>

#include "oocarray/runtime.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;

namespace {

const std::size_t block_size = 4 * page_bytes;
const std::size_t per_block = block_size / 8;

struct grid {
  static constexpr std::size_t rows = 8, columns = 16, blocks = rows * columns;

  explicit grid(unsigned threads, unsigned delay_us = 0) : source(blocks, block_size, threads, delay_us) {
    source.together = 4;
    for (std::size_t i = 0; i < blocks * per_block; ++i) source.as<std::uint64_t>()[i] = i;
  }

  /// Wrong words in block b.
  static std::size_t wrong_in(segment& s, std::size_t b) {
    const auto* w = reinterpret_cast<const std::uint64_t*>(s.base());
    std::size_t wrong = 0;
    for (std::size_t i = b * per_block; i < (b + 1) * per_block; ++i) wrong += w[i] != i;
    return wrong;
  }
  /// Wrong words, in columns of blocks.
  static std::size_t wrong_in_columns(segment& s) {
    std::size_t wrong = 0;
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t r = 0; r < rows; ++r) wrong += wrong_in(s, r * columns + c);
    return wrong;
  }

  memory_source source;
};

}  // namespace

TEST_CASE("a sweep down columns loads neighbours together, and no block twice") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(2);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  CHECK(grid::wrong_in_columns(s) == 0);
  CHECK(g.source.loads <= grid::blocks + 10);  // it does not know where the sweep ends
  CHECK(g.source.joint_loads >= 20);
  CHECK(rt.stats().read_ahead_waste == 0);
}

TEST_CASE("where neighbours cannot stay until their turn they are not loaded together") {
  runtime rt({.memory = 20 * block_size, .block = block_size});
  grid g(2);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  CHECK(grid::wrong_in_columns(s) == 0);
  CHECK(g.source.joint_loads == 0);
}

TEST_CASE("prefetch() loads neighbours together") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(1);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  const block_range which[] = {{2, 9}};
  s.prefetch(which);
  CHECK(g.source.joint_loads == 2);  // 2 3 | 4 5 6 7 | 8
  CHECK(g.source.loads == 7);
  for (std::size_t b = 2; b < 9; ++b) CHECK(grid::wrong_in(s, b) == 0);
  CHECK(rt.stats().faults == 0);
}

TEST_CASE("after a joint load failed, each block is loaded by itself") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(1, 3000);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  g.source.fail_loads = 1;
  const block_range which[] = {{0, 4}};
  s.prefetch(which);
  CHECK(grid::wrong_in(s, 3) == 0);  // its fault waits for the joint load
  CHECK(grid::wrong_in(s, 0) == 0);
  CHECK(g.source.joint_loads == 1);
  CHECK(g.source.loads == 8);
}

TEST_CASE("a failure of one neighbour's own load leaves the others in memory") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(1);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  g.source.fail_loads = 5;  // the four of the joint load, and the first block once more
  const block_range which[] = {{0, 4}};
  s.prefetch(which);
  // The first one last: a touch of it while its load fails would end the process.
  for (std::size_t b = 4; b-- > 0;) CHECK(grid::wrong_in(s, b) == 0);
  CHECK(g.source.loads == 9);
}

TEST_CASE("an invalidation drops a joint load in flight") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(1, 20000);
  segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
  const block_range which[] = {{0, 4}};
  s.prefetch(which);
  CHECK(s.invalidate(false) == segment::invalidated::done);
  for (std::size_t b = 0; b < 4; ++b) CHECK(grid::wrong_in(s, b) == 0);
  CHECK(rt.stats().read_ahead_waste >= 1);
}

TEST_CASE("a segment goes away while a joint load is in flight") {
  runtime rt({.memory = 80 * block_size, .block = block_size});
  grid g(2, 5000);
  for (int i = 0; i < 5; ++i) {
    segment s(rt.pager(), {.name = "a", .block_bytes = block_size, .blocks = grid::blocks}, g.source);
    const block_range which[] = {{0, 16}};
    s.prefetch(which);
  }
  CHECK(rt.stats().resident_bytes == 0);
}
