// Which blocks sweeps ask for.  No memory, no pager.
#include "runtime/policy/read_ahead.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

using namespace ooc::detail;

namespace {

using blocks_t = std::vector<block_index>;

/// The last of these touches asks for this.
blocks_t after(read_ahead& r, const blocks_t& touches, block_index blocks, unsigned limit, const ahead_group& g) {
  blocks_t wanted;
  for (block_index b : touches) {
    wanted.clear();
    r.touched(b, blocks, limit, g, wanted);
  }
  return wanted;
}

/// Touches down the columns of a grid with rows of 8 blocks and 4 rows.
blocks_t columns(std::size_t lines, std::size_t more) {
  blocks_t t;
  for (block_index c = 0; c < lines; ++c)
    for (block_index r = 0; r < 4; ++r) t.push_back(r * 8 + c);
  for (block_index r = 0; r < more; ++r) t.push_back(r * 8 + lines);
  return t;
}

}  // namespace

TEST_CASE("a sweep from block to block completes the group that it comes to") {
  read_ahead r;
  CHECK(after(r, {0, 1}, 100, 8, {4, 0}) == blocks_t{2, 3});
  CHECK(after(r, {2}, 100, 8, {4, 0}) == blocks_t{3, 4, 5, 6, 7});
  CHECK(after(r, {3}, 9, 8, {4, 0}) == blocks_t{4, 5, 6, 7, 8});
}

TEST_CASE("without groups a sweep asks for its own blocks only") {
  read_ahead r;
  CHECK(after(r, {0, 1}, 100, 8, {}) == blocks_t{2, 3});
  CHECK(after(r, {2}, 100, 8, {}) == blocks_t{3, 4, 5, 6});
  CHECK(after(r, columns(2, 1), 32, 2, {}) == blocks_t{10, 18});
}

TEST_CASE("a sweep down one column asks for no neighbours before it has gone on to the next") {
  read_ahead r;
  CHECK(after(r, {0, 8, 16}, 32, 4, {4, 100}) == blocks_t{24, 1});
}

TEST_CASE("a sweep down columns takes those of the same group along") {
  read_ahead r;
  // From the second column on; the group ends with the fourth.
  CHECK(after(r, columns(1, 1), 32, 4, {4, 100}) == blocks_t{9, 10, 11});
  CHECK(after(r, columns(4, 1), 32, 4, {4, 100}) == blocks_t{12, 13, 14, 15});
}

TEST_CASE("a group ends where the row of blocks does") {
  // Rows of 6 blocks: block 4 begins a group whose third block is in the next row.
  read_ahead r;
  blocks_t t;
  for (block_index c = 0; c < 4; ++c)
    for (block_index row = 0; row < 4; ++row) t.push_back(row * 6 + c);
  t.push_back(4);
  const blocks_t wanted = after(r, t, 24, 4, {4, 100});
  CHECK(wanted == blocks_t{10, 11});
}

TEST_CASE("columns come along as far as there is room for them until their turn") {
  read_ahead r;
  // 4 columns of 4 blocks and one group read ahead need 20 blocks; 2 columns and two groups, 12.
  CHECK(after(r, columns(4, 1), 32, 4, {4, 20}) == blocks_t{12, 13, 14, 15});
  read_ahead tighter;
  CHECK(after(tighter, columns(4, 1), 32, 4, {4, 19}) == blocks_t{12, 13, 20, 21});
  read_ahead none;
  CHECK(after(none, columns(4, 1), 32, 4, {4, 11}) == blocks_t{12, 20, 28, 5});
}

TEST_CASE("small blocks are asked for when half of those asked for has been touched") {
  read_ahead r;
  blocks_t wanted;
  const auto touch = [&](block_index b, bool was_out = false) {
    wanted.clear();
    r.touched(b, 10'000, 8, {}, wanted, refill::by_halves, was_out);
    return wanted;
  };
  for (const block_index b : {0, 10, 20, 30, 40}) touch(b);  // the window grows to 8
  blocks_t asked;
  for (block_index b = 50; b <= 1000; b += 10) {
    const blocks_t now = touch(b);
    CHECK((now.empty() || now.size() >= 4));
    asked.insert(asked.end(), now.begin(), now.end());
  }
  for (std::size_t i = 1; i < asked.size(); ++i) REQUIRE(asked[i] == asked[i - 1] + 10);  // each once
  CHECK(asked.back() > 1000 + 4 * 10);
}

TEST_CASE("a block that was asked for and is not there has all that lies ahead asked for again") {
  read_ahead r;
  blocks_t wanted;
  for (block_index b = 0; b <= 200; b += 10) {
    wanted.clear();
    r.touched(b, 10'000, 8, {}, wanted, refill::by_halves, false);
  }
  wanted.clear();
  r.touched(210, 10'000, 8, {}, wanted, refill::by_halves, true);
  CHECK(wanted == blocks_t{220, 230, 240, 250, 260, 270, 280, 290});
}

TEST_CASE("a sweep whose touches are few and far between is still one") {
  read_ahead r;
  blocks_t wanted;
  for (const block_index b : {0, 7, 14, 21, 28, 35}) r.touched(b, 1000, 32, {}, wanted, refill::by_halves, false);
  CHECK(r.touched(35 + 7 * 16, 1000, 32, {}, wanted, refill::by_halves, false) == 7);
  CHECK(r.touched(35 + 7 * 60, 1000, 32, {}, wanted, refill::by_halves, false) == 0);
}

TEST_CASE("a column that ends within what is asked for goes on with the next") {
  read_ahead r;
  blocks_t wanted;
  // Rows of 100 words of 8 bytes, by bytes: the second column begins at byte 8.
  r.guess_outer_step(8);
  for (block_index row = 0; row < 90; ++row) r.touched(row * 800, 80'000, 32, {}, wanted, refill::by_halves, false);
  const auto in_second = std::count_if(wanted.begin(), wanted.end(), [](block_index b) { return b % 800 == 8; });
  CHECK(in_second > 0);
  CHECK(r.touched(8 + 3 * 800, 80'000, 32, {}, wanted, refill::by_halves, false) == 800);
}

namespace {

/// A walk down the columns of rows of so many words, in grains of 512 words, of which one in `seen` is noticed when it
/// is touched, unless it had to be waited for.  The share that had to be, of the grains that are new from column 128
/// on.
double waited_for(std::int64_t words, std::int64_t rows, unsigned seen) {
  constexpr std::int64_t grain = 512, columns = 1024;
  read_ahead r;
  r.guess_outer_step(8);
  std::set<std::int64_t> in, touched;
  unsigned waited = 0, all = 0, n = 0;
  blocks_t wanted;
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t word = row * words + column;
      if (!touched.insert(word / grain).second) continue;
      const bool was_out = in.insert(word / grain).second;
      all += column >= 128;
      waited += column >= 128 && was_out;
      if (!was_out && ++n % seen != 0) continue;
      wanted.clear();
      r.touched(static_cast<block_index>(word * 8), static_cast<block_index>(rows * words * 8), 256, {}, wanted,
                refill::by_halves, was_out);
      for (const block_index w : wanted) in.insert(static_cast<std::int64_t>(w) / 8 / grain);
    }
  return static_cast<double>(waited) / all;
}

}  // namespace

TEST_CASE("columns are read ahead where rows are no whole number of grains long") {
  for (const std::int64_t words : {2896, 2897, 3000, 5792, 5793, 6143})
    for (const unsigned seen : {1u, 16u}) {
      INFO(words << " words, one in " << seen << " seen");
      CHECK(waited_for(words, 3000, seen) < 0.05);
    }
}
