// What programs do with arrays: loops, views, iterators, tiles, Eigen, algorithms, threads, pins.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "array/random_seed.hpp"
#include "array/test_arrays.hpp"
#include "oocarray/eigen.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace ooc::literals;

TEST_CASE("a loop over an array eight times the budget gives what a plain loop gives") {
  memory_store nodes(4);
  const store s = nodes.handle();
  runtime rt(memory(256_KiB));
  constexpr std::size_t n = 360;
  ooc_array<double, 2> a{rt, s, "plate/a", create, {n, n}, {.block = 8_KiB}};
  ooc_array<double, 2> b{rt, s, "plate/b", create, {n, n}, {.block = 8_KiB}};
  std::vector<double> plain(n * n), result(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) a[i][j] = plain[i * n + j] = static_cast<double>(i * 7 + j);
  for (std::size_t i = 1; i + 1 < n; ++i)
    for (std::size_t j = 1; j + 1 < n; ++j) {
      b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
      result[i * n + j] = 0.25 * (plain[(i - 1) * n + j] + plain[(i + 1) * n + j] +
                                  plain[i * n + j - 1] + plain[i * n + j + 1]);
    }
  CHECK(std::equal(result.begin(), result.end(), b.begin()));
  b.writeback();
  CHECK(b.dirty_blocks() == 0);
  CHECK(rt.stats().evictions > 0);
}
