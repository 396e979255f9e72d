// Tests of what ranks tell each other of blocks: nothing is lost, and regular patterns take a few bytes.
#include "runtime/geometry/write_notices.hpp"

#include <catch2/catch.hpp>

#include "oocarray/error.hpp"
#include "support/random_source.hpp"

using namespace ooc;
using namespace ooc::detail;
using testing::between;

namespace {

std::vector<block_range> every(block_index step, block_index width, block_index blocks) {
  std::vector<block_range> which;
  for (block_index b = 0; b + width <= blocks; b += step) which.push_back({b, b + width});
  return which;
}

}  // namespace

TEST_CASE("a notice holds exactly the blocks that were written") {
  OOC_INFO_SEED();
  std::mt19937_64 g = testing::random_source(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<block_range> which;
    block_index at = 0;
    for (std::uint64_t n = between(g, 0, 40); n > 0; --n) {
      const std::uint64_t far = between(g, 0, 9) == 0 ? std::uint64_t{1} << 40 : 3;
      const block_index first = at + between(g, which.empty() ? 0 : 1, far);
      which.push_back({first, first + between(g, 1, far)});
      at = which.back().last;
    }
    REQUIRE(unpacked_notice(packed_notice(which)) == which);
  }
}

TEST_CASE("a notice of a regular pattern is small, however many blocks it names") {
  const block_range half{1000, 500'000'000};
  CHECK(packed_notice({&half, 1}).size() <= 12);
  CHECK(packed_notice(every(4, 1, 1'000'000)).size() <= 16);
  CHECK(packed_notice(every(10, 3, 1'000'000)).size() <= 16);
  CHECK(packed_notice({}).empty());
}

TEST_CASE("a notice that is cut short or makes no sense is refused") {
  std::vector<std::byte> bytes = packed_notice(every(1000, 300, 100'000));
  bytes.pop_back();
  CHECK_THROWS_AS(unpacked_notice(bytes), integrity_error);
  const std::vector<std::byte> nothing_written{std::byte{1}, std::byte{0}, std::byte{1}};
  CHECK_THROWS_AS(unpacked_notice(nothing_written), integrity_error);
  CHECK_THROWS_AS(unpacked_notice(std::vector<std::byte>(12, std::byte{0xff})), integrity_error);
}

TEST_CASE("the blocks of several notices are joined") {
  CHECK(merged({{5, 7}, {0, 2}, {6, 9}, {2, 3}, {20, 20}}) == std::vector<block_range>{{0, 3}, {5, 9}});
}

TEST_CASE("ranges without others are the blocks that lie in none of these") {
  OOC_INFO_SEED();
  std::mt19937_64 g = testing::random_source(5);
  const auto some = [&] {
    std::vector<block_range> which;
    for (block_index at = 0; at < 60 && which.size() < 8;) {
      const block_index first = at + between(g, which.empty() ? 0 : 1, 9);
      which.push_back({first, at = first + between(g, 1, 9)});
    }
    return which;
  };
  for (int round = 0; round < 500; ++round) {
    const std::vector<block_range> ranges = some(), others = some();
    const std::vector<block_range> rest = without(ranges, others);
    for (block_index b = 0; b < 80; ++b) REQUIRE(contains(rest, b) == (contains(ranges, b) && !contains(others, b)));
  }
}
