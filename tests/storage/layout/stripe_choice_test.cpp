#include "storage/layout/stripe_choice.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace ooc::storage;

TEST_CASE("tiles and blocks load nodes evenly whatever the length of a row") {
  for (const std::uint32_t nodes : {2u, 3u, 4u, 5u, 8u, 12u, 16u})
    for (const std::uint64_t columns :
         {512u, 1000u, 1024u, 3000u, 4096u, 8192u, 10000u, 16384u, 20000u, 32768u, 50000u, 65536u, 131072u, 262144u})
      for (const std::uint64_t side : {256u, 512u}) {
        const std::uint64_t row = columns * 8, width = side * 8;
        if (width > row) continue;
        const std::uint64_t block = side * width;
        const std::uint64_t sf = choose_stripe({columns * row, block, row}, nodes);
        INFO(nodes << " nodes, " << columns << " columns, " << side << " squared: sf " << sf);
        REQUIRE(sf % 4096 == 0);
        REQUIRE(sf > 0);
        // As many nodes as find 64 KiB in a block have as much each.
        const double reached = std::min<double>(nodes, static_cast<double>(block) / 65536);
        // Measured at positions that the choice did not look at.
        for (const std::uint64_t tile_row : {0u, 3u})
          for (const std::uint64_t tile_column : {0u, 1u, 5u}) {
            const std::uint64_t offset = tile_row * side * row + tile_column * width;
            if ((tile_column + 1) * width > row) continue;
            // Where it has no more for each node, no size does better than 1.5.
            CHECK(tile_imbalance(sf, nodes, offset, side, width, row) * reached / nodes <=
                  (block / nodes >= 65536 ? 1.35 : 1.5));
          }
        for (const std::uint64_t index : {0u, 1u, 7u})
          CHECK(tile_imbalance(sf, nodes, index * block, 1, block, block) * reached / nodes <=
                (block / nodes >= 65536 ? 1.5 : 2));
      }
}

TEST_CASE("a tile touches 4 nodes where 64 KiB stripes touch 4, 2 and 1") {
  const std::uint64_t width = 512 * 8, block = 512 * width;
  CHECK(tile_imbalance(65536, 4, 0, 512, width, 8192 * 8) < 1.01);
  CHECK(tile_imbalance(65536, 4, 0, 512, width, 16384 * 8) > 1.99);
  CHECK(tile_imbalance(65536, 4, 0, 512, width, 32768 * 8) > 3.99);
  for (const std::uint64_t columns : {8192, 16384, 32768}) {
    const std::uint64_t row = columns * 8;
    const std::uint64_t sf = choose_stripe({columns * row, block, row}, 4);
    INFO("sf " << sf);
    CHECK(tile_imbalance(sf, 4, 0, 512, width, row) <= 1.1);
  }
}

TEST_CASE("a block goes to as many nodes as its requests are worth") {
  const std::uint64_t file = 64 << 20, KiB = 1024;
  CHECK(choose_stripe({file, 4 * KiB}, 16) == 4 * KiB);
  CHECK(choose_stripe({file, 64 * KiB}, 16) == 64 * KiB);
  CHECK(choose_stripe({file, 256 * KiB}, 4) == 64 * KiB);
  CHECK(choose_stripe({file, 256 * KiB}, 16) == 64 * KiB);
  CHECK(choose_stripe({file, 1024 * KiB}, 4) == 256 * KiB);
  CHECK(choose_stripe({file, 8192 * KiB}, 4) == 256 * KiB);
}

TEST_CASE("with several readers a block need not go to all nodes") {
  const std::uint64_t file = 64 << 20, KiB = 1024;
  CHECK(choose_stripe({file, 256 * KiB, 0, 4}, 4) == 256 * KiB);
  CHECK(choose_stripe({file, 64 * KiB, 0, 8}, 8) == 64 * KiB);
  CHECK(choose_stripe({file, 1024 * KiB, 0, 4}, 16) == 256 * KiB);
  CHECK(choose_stripe({file, 2048 * KiB, 0, 4}, 4) == 256 * KiB);
  const std::uint64_t sf = choose_stripe({file, 256 * KiB, 0, 3}, 2);
  CHECK(tile_imbalance(sf, 2, 0, 1, 3 * 256 * KiB, 0) <= 1.1);
}

TEST_CASE("small tiles one below another lie on several nodes") {
  const std::uint64_t side = 128, width = side * 4, tile = side * width;
  for (const std::uint64_t row : {5788u, 1u << 16, 1u << 20, 1u << 21}) {
    const std::uint64_t sf = choose_stripe({4096 * row, tile, row}, 8);
    INFO("rows of " << row << " bytes: sf " << sf);
    CHECK(tile_imbalance(sf, 8, 0, 8 * side, width, row) <= 1.5);
  }
}

TEST_CASE("blocks decide where tiles are rare, unless a tile would lie on one node") {
  const std::uint64_t block = 1 << 20, side = 512, width = side * 4;
  for (const std::uint64_t row : {5788u, 46340u, 1u << 16})
    CHECK(choose_stripe({4096 * row, block, row, 1, false}, 4) == 256 << 10);
  for (const std::uint64_t row : {1u << 20, 1u << 21}) {
    CHECK(tile_imbalance(256 << 10, 4, 0, side, width, row) == 4);
    const std::uint64_t sf = choose_stripe({4096 * row, block, row, 1, false}, 4);
    INFO("rows of " << row << " bytes: sf " << sf);
    CHECK(tile_imbalance(sf, 4, 0, side, width, row) <= 1.5);
    CHECK(tile_imbalance(sf, 4, 0, 1, block, block) <= 1.1);
  }
}

TEST_CASE("small files, odd sizes and extremes have a stripe size too") {
  for (const std::uint64_t file : {0ull, 1ull, 4096ull, 5000ull, 1ull << 40, 1ull << 62})
    for (const std::uint64_t block : {0ull, 1ull, 100ull, 65536ull, 1ull << 21, 1ull << 34})
      for (const std::uint64_t row : {0ull, 1ull, 8ull, 4095ull, 1ull << 20, 1ull << 40})
        for (const std::uint32_t nodes : {1u, 2u, 7u, 100u, 1000u}) {
          const std::uint64_t sf = choose_stripe({file, block, row}, nodes);
          CHECK(sf >= 4096);
          CHECK(sf % 4096 == 0);
          CHECK(sf <= 4 * 1024 * 1024);
        }
}

TEST_CASE("more nodes than the store has are left to be refused, and cost no time or memory") {
  const stripe_use use{1ull << 40, 1 << 20, 1 << 20};
  const ooc::striping chosen = with_stripe_size({0, 4'000'000'000, 0}, use, 3);
  CHECK(chosen.nn == 4'000'000'000);
  CHECK(chosen.sf == choose_stripe(use, 3));
}
