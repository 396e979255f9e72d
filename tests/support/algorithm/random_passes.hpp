// All elementwise algorithms over arrays of mixed types and any layouts, everything drawn at random, beside the plain
// loop.  With a group they are those of its ranks, which all draw the same.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/algorithm/elementwise.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

namespace ooc::testing {

/// Elements for which every sum is exact.
inline double exact(std::size_t n) { return static_cast<double>((n * 2654435761u) % 100000) - 50000; }

/// The number of an element in row-major order.
template <std::size_t N>
std::size_t number_of(const coordinates<N>& extents, const coordinates<N>& at) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < N; ++k) n = n * extents[k] + at[k];
  return n;
}

/// Arrays of the store `st`, whose names begin with `name`; up to `longest` elements in one dimension.
template <std::size_t N, class A, class B, class C>
void pass_at_random(std::mt19937_64& g, const store& st, const std::string& name, std::size_t longest,
                    const std::shared_ptr<process_group>& group = nullptr) {
  const bool same_layouts = std::is_same_v<A, B> && std::is_same_v<B, C> && A::contiguous;
  const std::uint64_t budget =
      (same_layouts ? 150_KiB : 900_KiB) + (between(g, 0, 1) ? 1_MiB : 4_KiB * between(g, 0, 8));
  runtime rt(memory(st.core()->staging_bytes() + budget));
  const coordinates<N> extents = random_extents<N>(g, longest);
  auto oa = random_order<double, N, A>(g);
  auto ob = random_order<float, N, B>(g);
  auto oc = random_order<double, N, C>(g);
  oa.replace = ob.replace = oc.replace = true;
  oa.group = ob.group = oc.group = group;
  pass_options options;
  options.threads = static_cast<unsigned>(between(g, 1, 8));
  options.mark = between(g, 0, 3) == 0;
  options.reproducible = between(g, 0, 1);
  CAPTURE(describe<double>(extents, oa, budget), describe<float>(extents, ob, budget),
          describe<double>(extents, oc, budget), options.threads, options.mark, options.reproducible);
  ooc_array<double, N, A> a{rt, st, name + "a", create, extents, oa};
  ooc_array<float, N, B> b{rt, st, name + "b", create, extents, ob};
  ooc_array<double, N, C> c{rt, st, name + "c", create, extents, oc};
  const auto fill = [&](auto& x, auto value) {
    for_each_element<N>(x.local_box(), extents,
                        [&](const coordinates<N>& at, std::size_t n) { x.element(at) = value(n); });
    if (group) x.sync();
  };
  fill(a, exact);
  fill(b, [](std::size_t n) { return static_cast<float>(n % 17); });
  fill(c, [](std::size_t) { return -1.0; });
  const auto wrong = [&](auto& x, auto expected) {
    if (group) x.sync();
    std::size_t count = 0;
    for_each_element<N>(a.whole(), extents, [&](const coordinates<N>& at, std::size_t n) {
      count += std::as_const(x).element(at) != expected(n);
    });
    if (group) group->barrier("all have compared");
    return count;
  };
  const auto product = [](std::size_t n) { return exact(n) * static_cast<double>(n % 17); };

  const auto done = transform(
      a, b, c, [](double x, float y) { return x * y; }, options);
  const std::size_t mine = c.local_box().size();
  CHECK(done.bytes_read == mine * (sizeof(double) + sizeof(float)));
  CHECK(done.bytes_written == mine * sizeof(double));
  REQUIRE(wrong(c, product) == 0);

  double sum = 0, inner = 0;
  for (std::size_t n = 0; n < a.size(); ++n) sum += exact(n), inner += product(n);
  CHECK(reduce(a, 3.0, std::plus<>(), options).value == sum + 3);
  CHECK(transform_reduce(a, b, 0.0, std::plus<>(), std::multiplies<>(), options).value == inner);
  const auto most = [](double x, double y) { return std::max(x, y); };
  double largest = std::numeric_limits<double>::lowest();
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::abs(exact(n)));
  CHECK(transform_reduce(
            c, 0.0, most, [](double) { return 0.0; }, options)
            .value == 0.0);
  CHECK(transform_reduce(
            a, 0.0, most, [](double x) { return std::abs(x); }, options)
            .value == largest);

  for_each(
      std::tie(std::as_const(b), c), [](float y, double& z) { z += y; }, options);
  REQUIRE(wrong(c, [&](std::size_t n) { return product(n) + static_cast<double>(n % 17); }) == 0);
  transform(
      c, c, [](double x) { return -x; }, options);
  REQUIRE(wrong(c, [&](std::size_t n) { return -(product(n) + static_cast<double>(n % 17)); }) == 0);

  const auto numbered = [&](auto... at) { return exact(number_of(extents, coordinates<N>{at...})); };
  const auto c_plus_number = [&](double& z, auto... at) requires(sizeof...(at) == N) { z += numbered(at...); };
  for_each(c, c_plus_number, options);
  REQUIRE(wrong(c, [&](std::size_t n) { return exact(n) - (product(n) + static_cast<double>(n % 17)); }) == 0);
  generate(c, numbered, options);
  REQUIRE(wrong(c, exact) == 0);
  const auto weighted = [&](float y, auto... at) requires(sizeof...(at) == N) { return y * numbered(at...); };
  CHECK(transform_reduce(b, 0.0, std::plus<>(), weighted, options).value == inner);
  std::size_t lowest = 0, highest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (n % 17 < lowest % 17) lowest = n;
    if (n % 17 > highest % 17) highest = n;
  }
  CHECK(number_of(extents, min_element(b, std::less<>(), options).value.at) == lowest);
  CHECK(number_of(extents, max_element(b, std::less<>(), options).value.at) == highest);
  CHECK(max_element(b, std::less<>(), options).value.value == static_cast<float>(highest % 17));
  const auto filled = ooc::fill(c, 2, options);
  CHECK(filled.bytes_read == 0);
  REQUIRE(wrong(c, [](std::size_t) { return 2.0; }) == 0);

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
    ooc::exclusive_scan(a, c, 7, std::plus<>(), options);
    REQUIRE(wrong(c, [&](std::size_t n) { return 7 + (n == 0 ? 0 : sums[n - 1]); }) == 0);
    ooc::inclusive_scan(a, a, std::plus<>(), options);
    REQUIRE(wrong(a, [&](std::size_t n) { return sums[n]; }) == 0);
    ooc::exclusive_scan(a, a, 0, std::plus<>(), options);
    double before = 0;
    for (std::size_t n = 0; n < a.size(); ++n) before += std::exchange(sums[n], before);
    REQUIRE(wrong(a, [&](std::size_t n) { return sums[n]; }) == 0);
  } else {
    REQUIRE(wrong(a, exact) == 0);
  }
}

}  // namespace ooc::testing
