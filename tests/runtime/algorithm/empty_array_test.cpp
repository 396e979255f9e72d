// Algorithms over arrays whose first extent is 0.

#include <catch2/catch.hpp>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class Layout>
void pass_over_nothing() {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  using matrix = ooc_array<double, 2, Layout>;
  const array_options<double> o{.max_extents = {100}};
  matrix a{rt, nodes.handle(), "a", create, {0, 30}, o}, b{rt, nodes.handle(), "b", create, {0, 30}, o};
  CHECK(reduce(a, 0.0).value == 0);
  CHECK(reduce(a, 7.0, std::plus<>(), {.reproducible = true}).value == 7);
  CHECK(transform_reduce(a, b, 0.0).value == 0);
  CHECK_THROWS_WITH(min_element(a), Contains("'a' has no elements"));
  CHECK_THROWS_WITH(max_element(a), Contains("'a' has no elements"));
  CHECK(histogram(a, 0.0, 1.0, 10).value.counts == std::vector<std::uint64_t>(10, 0));
  for_each(a, [](double& x) { x = 1; });
  fill(a, 3.0);
  transform(a, b, [](double x) { return x; });
  copy(a, b);
  CHECK(a.size() == 0);
}

}  // namespace

TEST_CASE("passes over arrays without elements do nothing, and a sum of nothing is what it began with") {
  pass_over_nothing<layout_right>();
  pass_over_nothing<layout_tiled>();
}

TEST_CASE("no elements are scanned, sorted, searched, multiplied and swept over") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  ooc_array<double, 1> keys{rt, nodes.handle(), "keys", create, {0}}, sums{rt, nodes.handle(), "sums", create, {0}};
  inclusive_scan(keys, sums);
  inclusive_scan(keys, sums, std::plus<>(), {.reproducible = true});
  exclusive_scan(keys, sums, 0.0);
  ooc::sort(keys);
  ooc::sort(keys, sort_options{.stable = true});
  CHECK(is_sorted(keys));
  CHECK(lower_bound(keys, std::vector{3.0}) == std::vector<std::size_t>{0});
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {0, 3}}, b{rt, nodes.handle(), "b", create, {3, 4}},
      c{rt, nodes.handle(), "c", create, {0, 4}};
  multiply(a, b, c);
  CHECK(c.size() == 0);
  const auto s = stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = in[-1][j] + in[1][j];
  });
  CHECK(sweep(a, 3, s).steps == 0);
  CHECK(sweep(a, 3, s.periodic(0)).steps == 0);
}

TEST_CASE("an array of several dimensions without elements is sorted, and a key would come at its beginning") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  ooc_array<double, 2> rows{rt, nodes.handle(), "rows", create, {0, 3}};
  ooc_array<double, 2, layout_tiled> tiles{
      rt,     nodes.handle(), "tiles",
      create, {0, 64},        {.order = file_order::tiled, .tile = {16, 16}, .max_extents = {100}}};
  const sort_options flat{.flat = true};
  const std::vector<double> keys{3, -1};
  CHECK(is_sorted(rows, {}, {}, flat));
  CHECK(is_sorted(tiles, {}, {}, flat));
  CHECK(lower_bound(rows, keys, {}, {}, flat) == std::vector<std::size_t>{0, 0});
  CHECK(lower_bound(tiles, keys, {}, {}, flat) == std::vector<std::size_t>{0, 0});
}
