// Elementwise passes: bit by bit the plain loop, each element read and written once, reductions
// that do not depend on threads.

#include "oocarray/algorithm/elementwise.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "support/random_boxes.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// Elements for which every sum is exact.
double exact(std::size_t n) { return static_cast<double>((n * 2654435761u) % 100000) - 50000; }

/// All algorithms over arrays of these layouts, everything drawn at random.
template <std::size_t N, class A, class B, class C>
void pass_at_random(std::mt19937_64& g, store_kind kind) {
  const test_store nodes(kind);
  const bool same_layouts = std::is_same_v<A, B> && std::is_same_v<B, C> && A::contiguous;
  const std::uint64_t budget =
      (same_layouts ? 150_KiB : 900_KiB) + (between(g, 0, 1) ? 1_MiB : 4_KiB * between(g, 0, 8));
  runtime rt(memory(nodes.staging() + budget));
  const coordinates<N> extents = random_extents<N>(g, 70000);
  const auto oa = random_order<double, N, A>(g);
  const auto ob = random_order<float, N, B>(g);
  const auto oc = random_order<double, N, C>(g);
  pass_options options;
  options.threads = static_cast<unsigned>(between(g, 1, 8));
  options.mark = between(g, 0, 3) == 0;
  CAPTURE(describe<double>(extents, oa, budget), describe<float>(extents, ob, budget),
          describe<double>(extents, oc, budget), options.threads, options.mark);
  ooc_array<double, N, A> a{rt, nodes.handle(), "a", create, extents, oa};
  ooc_array<float, N, B> b{rt, nodes.handle(), "b", create, extents, ob};
  ooc_array<double, N, C> c{rt, nodes.handle(), "c", create, extents, oc};
  for_each_element<N>(a.whole(), extents, [&](const coordinates<N>& at, std::size_t n) {
    a.element(at) = exact(n);
    b.element(at) = static_cast<float>(n % 17);
    c.element(at) = -1;
  });
  const auto wrong = [&](auto& x, auto expected) {
    std::size_t count = 0;
    for_each_element<N>(a.whole(), extents, [&](const coordinates<N>& at, std::size_t n) {
      count += std::as_const(x).element(at) != expected(n);
    });
    return count;
  };
  const auto product = [](std::size_t n) { return exact(n) * static_cast<double>(n % 17); };

  const auto done = transform(
      a, b, c, [](double x, float y) { return x * y; }, options);
  CHECK(done.bytes_read == a.size() * (sizeof(double) + sizeof(float)));
  CHECK(done.bytes_written == a.size() * sizeof(double));
  REQUIRE(wrong(c, product) == 0);

  double sum = 0, inner = 0;
  for (std::size_t n = 0; n < a.size(); ++n) sum += exact(n), inner += product(n);
  CHECK(reduce(a, 3.0, std::plus<>(), options).value == sum + 3);
  CHECK(transform_reduce(a, b, 0.0, std::plus<>(), std::multiplies<>(), options).value == inner);
  const auto most = [](double x, double y) { return std::max(x, y); };
  double largest = std::numeric_limits<double>::lowest();
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::abs(exact(n)));
  CHECK(transform_reduce(c, 0.0, most, [](double) { return 0.0; }, options).value == 0.0);
  CHECK(transform_reduce(
            a, 0.0, most, [](double x) { return std::abs(x); }, options)
            .value == largest);

  for_each(
      std::tie(std::as_const(b), c), [](float y, double& z) { z += y; }, options);
  REQUIRE(wrong(c, [&](std::size_t n) { return product(n) + static_cast<double>(n % 17); }) == 0);
  transform(
      c, c, [](double x) { return -x; }, options);
  REQUIRE(wrong(c, [&](std::size_t n) { return -(product(n) + static_cast<double>(n % 17)); }) == 0);

  const auto h = histogram(b, 0, 16, 8, options);
  std::vector<std::uint64_t> bins(8);
  std::uint64_t outside = 0;
  for (std::size_t n = 0; n < a.size(); ++n) n % 17 < 16 ? ++bins[n % 17 / 2] : ++outside;
  CHECK(h.value.counts == bins);
  CHECK(h.value.outside == outside);

  if constexpr (A::contiguous && C::contiguous) {
    ooc::inclusive_scan(a, c, std::plus<>(), options);
    std::vector<double> sums(a.size());
    double s = 0;
    for (std::size_t n = 0; n < a.size(); ++n) sums[n] = s += exact(n);
    REQUIRE(wrong(c, [&](std::size_t n) { return sums[n]; }) == 0);
    ooc::inclusive_scan(a, a, std::plus<>(), options);
    REQUIRE(wrong(a, [&](std::size_t n) { return sums[n]; }) == 0);
  } else {
    REQUIRE(wrong(a, exact) == 0);
  }
}

}  // namespace

TEST_CASE("elementwise passes are those of the plain loop, whatever shapes, orders and layouts") {
  std::mt19937_64 g(random_seed("elementwise passes"));
  for (int n = 0; n < rounds(5); ++n) {
    pass_at_random<1, layout_right, layout_right, layout_right>(g, store_kind::in_memory);
    pass_at_random<2, layout_right, layout_right, layout_right>(g, store_kind::in_memory);
    pass_at_random<2, layout_tiled, layout_right, layout_tiled>(g, store_kind::in_memory);
    pass_at_random<3, layout_tiled, layout_tiled, layout_tiled>(g, store_kind::in_memory);
  }
}

TEST_CASE("elementwise passes in an embedded store are those of the plain loop") {
  std::mt19937_64 g(random_seed("elementwise passes, embedded"));
  for (int n = 0; n < 3; ++n) {
    pass_at_random<2, layout_right, layout_right, layout_right>(g, store_kind::local);
    pass_at_random<3, layout_tiled, layout_tiled, layout_tiled>(g, store_kind::local);
  }
}

TEST_CASE("a transformation reads its inputs once and its output never") {
  const test_store nodes(store_kind::in_memory);
  constexpr std::size_t n = 1 << 20;  // 3 times 8 MiB in 6 MiB
  runtime rt(memory(nodes.staging() + 6_MiB));
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
  const auto done = transform(
      a, b, c, [](double x, double y) { return x + y; }, {.threads = 2, .mark = false});
  c.writeback();
  const runtime_stats after = rt.stats();
  CAPTURE(after.bytes_reread - before.bytes_reread, after.read_ahead_waste - before.read_ahead_waste,
          after.read_ahead_blocks - before.read_ahead_blocks,
          after.loads_avoided - before.loads_avoided, after.faults - before.faults);
  CHECK(done.bytes_read == 2 * n * sizeof(double));
  CHECK(done.bytes_written == n * sizeof(double));
  // Where writes are slow, or a thread has lost its processor, blocks that it comes back to have left
  // memory and are read again.
  CHECK(after.bytes_read - before.bytes_read <= done.bytes_read * 3 / 2);
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
      ooc_array<double, 1> a{
          rt, nodes.handle(), "a", create, {n}, {.block = 4_KiB * threads, .replace = true}};
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
  CHECK_THROWS_AS(ooc::inclusive_scan(a, b, [&](double x, double y) { return careful(y, x); }, options),
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
      transform(a, b, [](double x) { return x; }, half);
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
  CHECK_THROWS_WITH(transform(a, b, same), Contains("transformation of 'a', 'b'") &&
                                               Contains("have not the same extents"));
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
  ooc_array<double, 2, layout_tiled> tiled{
      rt, nodes.handle(), "tiled", create, {64, 2048}, {.tile = {32, 16}}};
  CHECK_THROWS_WITH(transform(wide, tiled, same),
                    Contains("the arrays lie in memory in different orders, of which it must hold") &&
                        Contains("give the runtime") && Contains("ooc::copy()"));
}
