// options.plan: the report before, which is that of the run after it, and nothing else.

#include <catch2/catch.hpp>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/factorise.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

void check_alike(const pass_statistics& planned, const pass_statistics& done) {
  CHECK(planned.passes == done.passes);
  CHECK(planned.memory == done.memory);
  CHECK(planned.bytes_read == done.bytes_read);
  CHECK(planned.bytes_written == done.bytes_written);
  CHECK(planned.bound == done.bound);
  CHECK(planned.bound > 0);
  CHECK(planned.over_bound() >= 0.99);  // with what the kernel packs, memory is somewhat more than the bound's
}

struct planned_arrays {
  /// Nothing is read ahead: what the touches of matrix() set off would come in the middle of a plan.
  explicit planned_arrays(std::mt19937_64& g)
      : nodes(store_kind::in_memory), rt(memory(nodes.staging() + between(g, 300_KiB, 4_MiB), 1)) {}

  ooc_array<double, 2> matrix(const char* name, std::size_t rows, std::size_t columns) {
    ooc_array<double, 2> a{rt, nodes.handle(), name, create, {rows, columns}, {.block = 4_KiB, .replace = true}};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        a(i, j) = static_cast<double>((i * 7919 + j * 104729) % 1009) + (i == j ? 1e6 : 0);
    a.writeback();
    return a;
  }
  /// The plan moves nothing and marks nothing, and the run is what it says.
  template <class Run>
  auto as_planned(Run run) {
    const io_stats before = nodes.handle().stats();
    const auto planned = run(true);
    const io_stats moved = nodes.handle().stats() - before;
    CHECK(moved.bytes_read == 0);
    CHECK(moved.bytes_written == 0);
    const auto done = run(false);
    check_alike(planned, done);
    return planned;
  }

  test_store nodes;
  runtime rt;
};

}  // namespace

TEST_CASE("a plan is the report of the run that follows") {
  std::mt19937_64 g(random_seed("plans"));
  for (int round = 0; round < rounds(6, 60); ++round) {
    planned_arrays r(g);
    const std::size_t rows = between(g, 1, 400), columns = between(g, 1, 400), depth = between(g, 1, 300);
    const auto threads = static_cast<unsigned>(between(g, 1, 4));
    CAPTURE(rows, columns, depth, threads);
    {
      auto a = r.matrix("a", rows, columns), b = r.matrix("b", columns, rows);
      r.as_planned([&](bool plan) { return transpose(a, b, pass_options{.threads = threads, .plan = plan}); });
      const double last = std::as_const(a)(rows - 1, columns - 1);
      CHECK(std::as_const(b)(columns - 1, rows - 1) == last);
      r.as_planned([&](bool plan) { return fill(b, 3, {.threads = threads, .plan = plan}); });
      CHECK(std::as_const(b)(0, 0) == 3);
      const auto summed = r.as_planned([&](bool plan) { return reduce(a, 0.0, std::plus<>{}, {.plan = plan}); });
      CHECK(summed.value == 0);
      r.as_planned([&](bool plan) { return min_element(a, std::less<>{}, {.plan = plan}); });
      r.as_planned([&](bool plan) { return inclusive_scan(a, a, std::plus<>{}, {.plan = plan}); });
      r.as_planned([&](bool plan) { return histogram(a, 0.0, 1e6, 10, {.plan = plan}); });
    }
    {
      auto a = r.matrix("a", rows, columns);
      const sort_statistics s =
          r.as_planned([&](bool plan) { return sort(a, {.flat = true, .threads = threads, .plan = plan}); });
      CHECK(s.runs >= 1);
      CHECK(is_sorted(a, std::less<>{}, detail::as_it_is{}, {.flat = true}));
    }
    {
      auto a = r.matrix("a", rows, depth), b = r.matrix("b", depth, columns), c = r.matrix("c", rows, columns);
      const multiply_statistics s =
          r.as_planned([&](bool plan) { return multiply(a, b, c, {.threads = threads, .plan = plan}); });
      CHECK(s.tile_rows >= 1);
    }
    {
      auto a = r.matrix("a", columns, columns);
      std::vector<std::size_t> pivots(columns);
      r.as_planned([&](bool plan) { return lu(a, pivots, {.threads = threads, .plan = plan}); });
      std::vector<double> x(columns, 1);
      r.as_planned([&](bool plan) { return solve_lu(a, pivots, std::span(x), {.threads = threads, .plan = plan}); });
      auto vectors = r.matrix("x", 5, columns);
      r.as_planned([&](bool plan) { return solve_lu(a, pivots, vectors, {.threads = threads, .plan = plan}); });
      auto f = r.matrix("f", rows, columns);
      std::vector<double> tau(std::min(rows, columns));
      r.as_planned([&](bool plan) { return qr(f, tau, {.threads = threads, .plan = plan}); });
    }
  }
}

TEST_CASE("a sweep with whole slabs does what it has planned") {
  std::mt19937_64 g(random_seed("plan of a sweep"));
  for (int round = 0; round < rounds(6, 60); ++round) {
    planned_arrays r(g);
    auto a = r.matrix("a", between(g, 3, 300), between(g, 3, 200)), b = r.matrix("b", a.extent(0), a.extent(1));
    const std::size_t steps = between(g, 0, 30);
    const bool in_place = steps != 0 && between(g, 0, 1) == 0;
    CAPTURE(a.extent(0), a.extent(1), steps, in_place);
    int called = 0;
    const auto jacobi = stencil<2>({1, 1}, [&](auto& out, const auto& in) {
      ++called;
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
    });
    const sweep_statistics s = r.as_planned([&](bool plan) {
      const int before = called;
      const sweep_options o{.threads = 1, .plan = plan};
      const sweep_statistics done = in_place ? sweep(a, steps, jacobi, o) : sweep(a, b, steps, jacobi, o);
      if (plan) CHECK(called == before);
      return done;
    });
    CHECK(s.steps == steps);
  }
}

TEST_CASE("a plan refuses what the run would, and what has no report has no plan") {
  std::mt19937_64 g(random_seed("plans that are refused"));
  planned_arrays r(g);
  auto a = r.matrix("a", 20, 30), b = r.matrix("b", 20, 30);
  CHECK_THROWS_WITH(transpose(a, b, pass_options{.plan = true}), Catch::Contains("needs {30, 20}"));
  CHECK_THROWS_WITH(sort(a, {.plan = true}), Catch::Contains("options.flat"));
  CHECK_THROWS_WITH(cholesky(a, {.plan = true}), Catch::Contains("square"));
  CHECK_THROWS_WITH(multiply(a, a, b, {.plan = true}), Catch::Contains("is no product"));
  CHECK_THROWS_WITH(is_sorted(a, std::less<>{}, detail::as_it_is{}, {.flat = true, .plan = true}),
                    Catch::Contains("has no report"));
}

TEST_CASE("the bound is that of the papers") {
  std::mt19937_64 g(random_seed("bounds"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 64_MiB));
  const std::size_t n = 8192;  // 512 MiB, of which nothing is written
  const auto array = [&](const char* name) {
    return ooc_array<double, 2>{rt, nodes.handle(), name, create, {n, n}, {.block = 4_KiB}};
  };
  auto a = array("a"), b = array("b"), c = array("c");
  const auto of = [&](const pass_statistics& s) { return static_cast<double>(s.bound) / sizeof(double); };
  const auto memory_of = [&](const pass_statistics& s) { return static_cast<double>(s.memory) / sizeof(double); };
  const double cube = std::pow(static_cast<double>(n), 3);
  const multiply_statistics product = multiply(a, b, c, {.plan = true});
  CHECK(of(product) == Approx(2 * cube / std::sqrt(memory_of(product))).epsilon(0.001));
  CHECK(product.over_bound() < 2.5);
  std::vector<std::size_t> pivots(n);
  const factor_statistics of_lu = lu(a, pivots, {.plan = true});
  const double once = 2.0 * n * n;
  CHECK(of(of_lu) == Approx(std::max(2 * cube / (3 * std::sqrt(memory_of(of_lu))), once)).epsilon(0.001));
  const factor_statistics of_cholesky = cholesky(a, {.plan = true});
  CHECK(of(of_cholesky) ==
        Approx(std::max(cube / (3 * std::sqrt(2 * memory_of(of_cholesky))), 1.0 * n * (n + 1))).epsilon(0.001));
  const sort_statistics sorted = sort(a, {.flat = true, .plan = true});
  CHECK(sorted.bound == 4 * n * n * sizeof(double));
  CHECK(sorted.over_bound() == 1);
}
