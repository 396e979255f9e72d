// Copies, transpositions and elementwise passes on several ranks: what one process computes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "mpi/ranks.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

double start_value(std::size_t n) { return std::sin(static_cast<double>(n)); }

/// The rank writes its own rows.
template <class Array>
void fill_own(Array& a) {
  const std::size_t row = a.size() / a.extent(0);
  const auto [first, last] = a.local_rows();
  for (std::size_t e = first * row; e < last * row; ++e)
    a.element({e / row, e % row}) = start_value(e);
}

/// What differs from expected(i, j), as this rank sees it.
template <class Array, class F>
std::size_t wrong(const Array& a, F expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) count += a(i, j) != expected(i, j);
  return count;
}

}  // namespace

TEST_CASE("ranks copy, transpose, transform and reduce as one process does") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(51);
  const store st = common_store();
  for (int n = 0; n < 6; ++n) {
    const std::size_t rows = between(g, 1, 200), cols = between(g, 1, 90);
    const bool tiled = between(g, 0, 1);
    array_options<double> o{.block = 4_KiB * between(g, 1, 2), .replace = true, .group = group};
    o.owner_computes = between(g, 0, 1);
    array_options<double> ot = o;
    if (tiled) {
      ot.order = file_order::tiled;
      ot.tile = {8, 16};
    }
    pass_options options;
    options.threads = static_cast<unsigned>(between(g, 1, 3));
    options.mark = between(g, 0, 1);
    options.reproducible = true;
    CAPTURE(rows, cols, tiled, o.owner_computes, options.threads, options.mark);
    runtime rt(memory(st.core()->staging_bytes() + 1_MiB));
    ooc_array<double, 2> a{rt, st, "passes/a", create, {rows, cols}, o};
    ooc_array<double, 2> same{rt, st, "passes/same", create, {rows, cols}, o};
    ooc_array<double, 2, layout_tiled> turned{
        rt, st, "passes/turned", create, {cols, rows}, {.tile = {8, 16}, .replace = true, .group = group}};
    ooc_array<double, 2> square{rt, st, "passes/square", create, {rows, rows}, ot};
    fill_own(a);
    fill_own(square);
    const auto at = [&](std::size_t i, std::size_t j) { return start_value(i * cols + j); };

    // No sync() before: the copies bring the ranks' writes together.
    copy(a, same, options);
    REQUIRE(wrong(std::as_const(same), at) == 0);
    transpose(a, turned, {1, 0}, options);
    REQUIRE(wrong(std::as_const(turned), [&](auto i, auto j) { return at(j, i); }) == 0);
    transpose(square, options);
    REQUIRE(wrong(std::as_const(square),
                  [&](auto i, auto j) { return start_value(j * rows + i); }) == 0);

    const double sum = reduce(a, 0.0, std::plus<>(), options).value;
    // Of the sum that one process computes: the fold has the same shape.
    double alone = 0;
    {
      std::vector<double> all(rows * cols);
      for (std::size_t e = 0; e < all.size(); ++e) all[e] = start_value(e);
      ooc_array<double, 1> mine{rt, st, "passes/mine" + std::to_string(group->rank()), create,
                                {all.size()}, {.replace = true}};
      std::copy(all.begin(), all.end(), mine.begin());
      alone = reduce(mine, 0.0);
    }
    CHECK(sum == alone);

    transform(a, same, [](double x) { return 2 * x; }, options);
    same.sync();
    REQUIRE(wrong(std::as_const(same), [&](auto i, auto j) { return 2 * at(i, j); }) == 0);
    // Sums of integers are exact, whatever their order.
    for_each(same, [](double& x) { x = std::floor(x * 50); }, options);
    ooc::inclusive_scan(same, same, std::plus<>(), options);
    same.sync();
    double scanned = 0;
    REQUIRE(wrong(std::as_const(same), [&](auto i, auto j) {
              return scanned += std::floor(2 * at(i, j) * 50);
            }) == 0);
    const auto h = histogram(a, -1.0, 1.001, 7, options);
    std::uint64_t counted = h.value.outside;
    for (const std::uint64_t c : h.value.counts) counted += c;
    CHECK(counted == rows * cols);

    group->barrier("all have compared");
    a.close();
    same.close();
    turned.close();
    square.close();
  }
}

TEST_CASE("what one rank cancels or throws comes out of the pass on all") {
  const auto group = all_ranks();
  runtime rt(memory(common_store().core()->staging_bytes() + 1_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, common_store(), "passes/cancelled", create, {400, 64}, o};
  ooc_array<double, 2> b{rt, common_store(), "passes/target", create, {64, 400}, o};
  const bool last = group->rank() + 1 == group->size();
  pass_options options{.mark = false};
  options.progress = [&](const pass_progress&) { return !last; };
  CHECK_THROWS_WITH(transpose(a, b, options), Catch::Contains("cancelled"));
  CHECK_THROWS_WITH(for_each(
                        a, [&](double& x) { last ? throw std::runtime_error("too hot") : void(x = 1); },
                        {.mark = false}),
                    Catch::Contains("too hot"));
}
