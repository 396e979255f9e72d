// Elementwise passes: bit by bit the plain loop, each element read and written once, reductions
// that do not depend on threads.

#include "oocarray/algorithm/elementwise.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "support/algorithm/random_passes.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <std::size_t N, class A, class B, class C>
void pass_over(std::mt19937_64& g, store_kind kind) {
  const test_store nodes(kind);
  pass_at_random<N, A, B, C>(g, nodes.handle(), "", 70000);
}

}  // namespace

TEST_CASE("elementwise passes are those of the plain loop, whatever shapes, orders and layouts") {
  std::mt19937_64 g(random_seed("elementwise passes"));
  for (int n = 0; n < rounds(5, 25); ++n) {
    pass_over<1, layout_right, layout_right, layout_right>(g, store_kind::in_memory);
    pass_over<2, layout_right, layout_right, layout_right>(g, store_kind::in_memory);
    pass_over<2, layout_tiled, layout_right, layout_tiled>(g, store_kind::in_memory);
    pass_over<3, layout_tiled, layout_tiled, layout_tiled>(g, store_kind::in_memory);
  }
}

TEST_CASE("elementwise passes in an embedded store are those of the plain loop") {
  std::mt19937_64 g(random_seed("elementwise passes, embedded"));
  for (int n = 0; n < rounds(3, 15); ++n) {
    pass_over<2, layout_right, layout_right, layout_right>(g, store_kind::local);
    pass_over<3, layout_tiled, layout_tiled, layout_tiled>(g, store_kind::local);
  }
}

TEST_CASE("a transformation reads its inputs once and its output never", "[megabytes]") {
  const test_store nodes(store_kind::in_memory);
  constexpr std::size_t n = 1 << 20;  // 3 times 8 MiB
  const bool fits = GENERATE(true, false);
  runtime rt(memory(nodes.staging() + (fits ? 32_MiB : 6_MiB)));
  const array_options<double> o{.block = 32_KiB};
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {n}, o};
  ooc_array<double, 1> b{rt, nodes.handle(), "b", create, {n}, o};
  ooc_array<double, 1> c{rt, nodes.handle(), "c", create, {n}, o};
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = static_cast<double>(i);
  for (auto* x : {&a, &b}) {
    x->writeback();
    x->invalidate();
  }
  const runtime_stats before = rt.stats();
  const auto done = transform(a, b, c, [](double x, double y) { return x + y; }, {.threads = 2, .mark = false});
  c.writeback();
  const runtime_stats after = rt.stats();
  CAPTURE(fits, after.bytes_reread - before.bytes_reread, after.read_ahead_waste - before.read_ahead_waste,
          after.read_ahead_blocks - before.read_ahead_blocks, after.loads_avoided - before.loads_avoided,
          after.faults - before.faults);
  CHECK(done.bytes_read == 2 * n * sizeof(double));
  CHECK(done.bytes_written == n * sizeof(double));
  // Where memory is short, and writes are slow or a thread has lost its processor, blocks that were read ahead
  // have left memory before it comes to them, and are read again: how many is a matter of the machine's load.
  CHECK(after.bytes_read - before.bytes_read <= done.bytes_read * (fits ? 2 : 5) / 2);
  CHECK(after.loads_avoided - before.loads_avoided == n * sizeof(double) / 32_KiB);
  CHECK(after.bytes_written - before.bytes_written <= done.bytes_written * 105 / 100);
}

TEST_CASE("a sum that is rounded is the same on any number of threads and whatever memory holds") {
  const test_store nodes(store_kind::in_memory);
  constexpr std::size_t n = 300'001;
  std::map<double, int> sums;
  double plain = 0, first_scanned = 0;
  for (const std::uint64_t budget : {1_MiB, 16_MiB})
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
      runtime rt(memory(nodes.staging() + budget));
      ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 4_KiB * threads, .replace = true}};
      plain = 0;
      for (std::size_t i = 0; i < n; ++i) plain += a[i] = std::sin(static_cast<double>(i));
      const pass_options options{.threads = threads, .mark = false};
      ++sums[reduce(a, 0.0, std::plus<>(), options).value];
      ooc::inclusive_scan(a, a, std::plus<>(), options);
      if (first_scanned == 0) first_scanned = a[n - 1];
      CHECK(a[n - 1] == first_scanned);
    }
  CHECK(sums.size() == 1);
  CHECK(sums.begin()->first == Approx(plain));
  CHECK(first_scanned == Approx(plain));
}

TEST_CASE("what a function throws comes out of the pass, and the arrays can be used") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {300'000}, {.block = 4_KiB}};
  ooc_array<double, 1> b{rt, nodes.handle(), "b", create, {300'000}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i);
  struct too_hot {};
  const pass_options options{.threads = 3, .mark = false};
  const auto check = [](double x) {
    if (x == 140'000) throw too_hot{};
    return x;
  };
  CHECK_THROWS_AS(transform(a, b, check, options), too_hot);
  b[299'999] = 5;
  CHECK(b[299'999] == 5);
  CHECK_THROWS_AS(transform_reduce(a, 0.0, std::plus<>(), check, options), too_hot);
  const auto careful = [&](double x, double y) { return check(x), x + y; };
  CHECK_THROWS_AS(ooc::inclusive_scan(
                      a, b, [&](double x, double y) { return careful(y, x); }, options),
                  too_hot);
}

TEST_CASE("a cancelled pass leaves its mark, and one that ends takes it away") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 1_MiB));
  using array = ooc_array<double, 1>;
  array a{rt, nodes.handle(), "a", create, {300'000}, {.block = 4_KiB}};
  {
    array b{rt, nodes.handle(), "b", create, {300'000}, {.block = 4_KiB}};
    const pass_options half{.progress = [](const pass_progress& p) { return p.part() < 0.5; }};
    try {
      transform(
          a, b, [](double x) { return x; }, half);
      FAIL("it was cancelled");
    } catch (const error& e) {
      CHECK(e.code() == std::errc::operation_canceled);
    }
    CHECK_THROWS(ooc::inclusive_scan(a, b, std::plus<>(), half));
  }
  CHECK_THROWS_WITH((array{rt, nodes.handle(), "b", open}),
                    Catch::Contains("in the middle") && Catch::Contains("of 'a', 'b', by test_passes["));
  {
    array b{rt, nodes.handle(), "b", open, {.unfinished = open_unfinished}};
    for_each(b, [](double& x) { x = 1; });
  }
  CHECK_NOTHROW(array{rt, nodes.handle(), "b", open});
}

TEST_CASE("passes over arrays that do not fit together are refused by name") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {50, 40}, {.block = 4_KiB}};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {40, 50}, {.block = 4_KiB}};
  using Catch::Contains;
  const auto same = [](double x) { return x; };
  CHECK_THROWS_WITH(transform(a, b, same),
                    Contains("transformation of 'a', 'b'") && Contains("have not the same extents"));
  CHECK_THROWS_WITH(for_each(std::tie(a, a), [](double&, double&) {}), Contains("'a' is given twice"));
  {
    ooc_array<double, 2> closed{rt, nodes.handle(), "closed", create, {4, 4}};
    closed.close();
    CHECK_THROWS_WITH(reduce(closed, 0.0), Contains("'closed' has been closed"));
  }
  a.close();
  ooc_array<double, 2> read{rt, nodes.handle(), "a", open_read_only, {.block = 4_KiB}};
  CHECK_THROWS_WITH(for_each(read, [](double& x) { x = 1; }), Contains("open for reading only"));
  CHECK(reduce(read, 0.0) == 0.0);
  ooc_array<double, 2> wide{rt, nodes.handle(), "wide", create, {64, 2048}, {.block = 4_KiB}};
  ooc_array<double, 2, layout_tiled> tiled{rt, nodes.handle(), "tiled", create, {64, 2048}, {.tile = {32, 16}}};
  CHECK_THROWS_WITH(transform(wide, tiled, same),
                    Contains("the arrays lie in memory in different orders, of which it must hold") &&
                        Contains("give the runtime") && Contains("ooc::copy()"));
}

TEST_CASE(
    "the smallest and the largest element are found with their places, the first of equal ones, past what is no "
    "number") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {300, 200}, {.block = 4_KiB}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ooc::fill(a, nan);
  CHECK(std::isnan(min_element(a).value.value));
  CHECK(min_element(a).value.at == coordinates<2>{0, 0});
  a[7][199] = a[8][0] = a[250][3] = 4;
  a[100][100] = 5;
  const auto [least, where] = min_element(a).value;
  CHECK(least == 4);
  CHECK(where == coordinates<2>{7, 199});
  CHECK(max_element(a).value.at == coordinates<2>{100, 100});
  CHECK(max_element(a, std::greater<>(), {.threads = 3}).value.at == coordinates<2>{7, 199});
}

TEST_CASE("functions are given indices only where they cannot do without") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 2, layout_tiled> a{rt, nodes.handle(), "a", create, {30, 20}, {.tile = {8, 8}}};
  ooc_array<std::int32_t, 2> b{rt, nodes.handle(), "b", create, {30, 20}};
  generate(a, [](auto... at) { return static_cast<double>((at * ...) + sizeof...(at)); });
  CHECK(a[3][5] == 17);
  for_each(a, [](double& x, auto... more) { x = static_cast<double>(sizeof...(more)); });
  CHECK(a[3][5] == 0);
  for_each(std::tie(a, b), [](double& x, std::int32_t& y, std::size_t i, std::size_t j) {
    x = static_cast<double>(i);
    y = static_cast<std::int32_t>(j);
  });
  CHECK(a[29][19] == 29);
  CHECK(b[29][19] == 19);
  transform(b, a, [](std::int32_t y, std::size_t i, std::size_t) { return 100.0 * static_cast<double>(i) + y; });
  CHECK(a[29][19] == 2919);
  const double trace =
      transform_reduce(a, 0.0, std::plus<>(), [](double x, std::size_t i, std::size_t j) { return i == j ? x : 0; });
  CHECK(trace == 101 * 190);
}

TEST_CASE("reductions to a truth value are those of all elements, on any number of threads") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  constexpr std::size_t n = 300'000;
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 4_KiB}};
  generate(a, [](std::size_t i) { return static_cast<double>(i); });
  const auto finite = [](double x) { return std::isfinite(x); };
  for (const unsigned threads : {1U, 8U}) {
    const pass_options options{.threads = threads};
    a[200'000] = 1;
    CHECK(transform_reduce(a, true, std::logical_and<>(), finite, options).value);
    a[200'000] = std::numeric_limits<double>::infinity();
    CHECK_FALSE(transform_reduce(a, true, std::logical_and<>(), finite, options).value);
  }
}

TEST_CASE("an exclusive scan begins with what is given, and leaves the last element out") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  constexpr std::size_t n = 100'000;
  ooc_array<std::int32_t, 1> lengths{rt, nodes.handle(), "lengths", create, {n}};
  ooc_array<std::uint64_t, 1> offsets{rt, nodes.handle(), "offsets", create, {n}};
  ooc::fill(lengths, 3);
  ooc::exclusive_scan(lengths, offsets, 10, std::plus<>(), {.threads = 4});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += offsets[i] != 10 + 3 * i;
  CHECK(wrong == 0);
}

TEST_CASE("a histogram of bins wider than the largest number counts each element in its bin") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {4}, {.block = 4_KiB}};
  a[0] = -1.5e308;
  a[1] = -0.5e308;
  a[2] = 0.5e308;
  a[3] = 1.5e308;
  CHECK(histogram(a, -1.6e308, 1.6e308, 4).value.counts == std::vector<std::uint64_t>{1, 1, 1, 1});
}

TEST_CASE("a histogram of bins narrower than the smallest number whose inverse is one counts each element in its bin") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {100}, {.block = 4_KiB}};
  using counts = std::vector<std::uint64_t>;
  constexpr double least = 100 * std::numeric_limits<double>::denorm_min();
  for (const double width : {1e-310, 1e-306, least}) {
    const double first = width == least ? 0 : 0.5;  // half of the least number is none
    for (std::size_t i = 0; i < 100; ++i) a[i] = (static_cast<double>(i) + first) * (width / 100);
    const auto h = histogram(a, 0.0, width, 10).value;
    CAPTURE(width);
    CHECK(h.counts == counts(10, 10));
    CHECK(h.outside == 0);
  }
  a[0] = 1e300, a[1] = -1e300, a[2] = std::numeric_limits<double>::infinity();
  CHECK(histogram(a, 0.0, 1e-306, 10).value.outside == 3);
  CHECK(histogram(a, 0.0, 0.0, 10).value.outside == 100);
  CHECK(histogram(a, 1e300, 1e300, 10).value.outside == 100);
}

TEST_CASE("a histogram between bounds that are not finite is refused, naming them") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {4}, {.block = 4_KiB}};
  constexpr double infinite = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(histogram(a, -infinite, 0.0, 10), Catch::Contains("from -inf to 0"));
  CHECK_THROWS_WITH(histogram(a, 0.0, infinite, 10), Catch::Contains("from 0 to inf"));
  CHECK_THROWS_WITH(histogram(a, nan, 1.0, 10), Catch::Contains("nan"));
}

TEST_CASE("a histogram of integers counts each in its bin, however large and near to an edge") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  using counts = std::vector<std::uint64_t>;
  constexpr std::int64_t large = std::int64_t{1} << 60;
  ooc_array<std::int64_t, 1> a{rt, nodes.handle(), "a", create, {8}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < 8; ++i) a[i] = large + static_cast<std::int64_t>(i);
  CHECK(histogram(a, large, large + 8, 8).value.counts == counts(8, 1));
  const auto inside = histogram(a, large + 1, large + 7, 2).value;
  CHECK(inside.counts == counts{3, 3});
  CHECK(inside.outside == 2);

  using limits = std::numeric_limits<std::int64_t>;
  const std::int64_t ends[] = {limits::min(), -1, 0, limits::max() - 1, limits::max(), limits::min(), -1, 0};
  for (std::size_t i = 0; i < 8; ++i) a[i] = ends[i];
  const auto whole = histogram(a, limits::min(), limits::max(), 2).value;
  CHECK(whole.counts == counts{4, 3});  // the middle is -0.5
  CHECK(whole.outside == 1);
  CHECK(histogram(a, 5, 5, 3).value.outside == 8);
  CHECK(histogram(a, 5, 7, 0).value.outside == 8);
  for (const std::size_t bins : {std::size_t{1} << 61, std::numeric_limits<std::size_t>::max()})
    CHECK_THROWS_WITH(histogram(a, 5, 7, bins), Catch::Contains("bins are more than"));

  ooc_array<std::uint64_t, 1> u{rt, nodes.handle(), "u", create, {3}, {.block = 4_KiB}};
  u[0] = std::numeric_limits<std::uint64_t>::max(), u[1] = u[0] - 1, u[2] = 0;
  CHECK(histogram(u, u[0] - 2, std::uint64_t{u[0]}, 2).value.counts == counts{0, 1});
  CHECK(histogram(u, -3, 1, 4).value.counts == counts{0, 0, 0, 1});

  // Each edge of the bins, and the number before it.
  ooc_array<int, 1> edges{rt, nodes.handle(), "edges", create, {2000}, {.block = 4_KiB}};
  std::mt19937_64 g(random_seed("edges of bins"));
  for (int round = 0; round < rounds(20, 200); ++round) {
    const std::size_t bins = between(g, 1, 997);
    const int upper = static_cast<int>(between(g, 1, 1'000'000));
    counts wanted(bins);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::size_t bin = i / 2 % bins;
      const std::uint64_t edge = (bin * static_cast<std::uint64_t>(upper) + bins - 1) / bins;
      const std::uint64_t x = edge < i % 2 ? 0 : edge - i % 2;
      edges[i] = static_cast<int>(x);
      if (x < static_cast<std::uint64_t>(upper)) ++wanted[x * bins / static_cast<std::uint64_t>(upper)];
    }
    CAPTURE(bins, upper);
    REQUIRE(histogram(edges, 0, upper, bins).value.counts == wanted);
  }
}
