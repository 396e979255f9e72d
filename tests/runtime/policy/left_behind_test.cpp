#include "runtime/policy/left_behind.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace ooc::detail;

namespace {

/// A walk over grains first, first + 1, ... of which one in 16 is noticed; those whose neighbours it has left.
std::vector<block_index> left_by(left_behind& l, block_index first, block_index count) {
  std::vector<block_index> left;
  for (block_index g = first; g < first + count; ++g) {
    l.add(g + 256);  // read ahead
    if (g % 16 == 0) l.touched(g);
    while (l.due()) left.push_back(l.take());
  }
  return left;
}

}  // namespace

TEST_CASE("what a walk has left is told in its order, when it has gone on") {
  left_behind l;
  const auto left = left_by(l, 0, 2000);
  REQUIRE(left.size() > 1500);
  for (std::size_t i = 0; i < left.size(); ++i) REQUIRE(left[i] == 256 + i);
  CHECK(left.back() + 64 <= 2000);
}

TEST_CASE("nothing has been left of what has not been touched") {
  left_behind l;
  for (block_index g = 0; g < 100'000; ++g) l.add(g);
  CHECK_FALSE(l.due());
  l.touched(0);  // forgotten by now
  CHECK_FALSE(l.due());
}

TEST_CASE("where a walk comes back to what it has left, nothing is told for a while") {
  left_behind l;
  const auto told_of = [&](block_index from, bool comes_back) {
    const std::size_t n = left_by(l, from, 2000).size();
    l.aged(n);
    for (std::size_t i = 0; comes_back && i < n; ++i) l.came_back();
    return n;
  };
  block_index at = 0;
  std::size_t told = 0;
  for (; at < 60'000; at += 2000) told = told_of(at, true);
  CHECK(told == 0);
  for (; at < 140'000; at += 2000) told = told_of(at, false);
  CHECK(told > 1500);
}
