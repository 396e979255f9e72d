// Products of matrices: what Eigen gives in memory, in the budget, with the traffic of the plan.  Elements are
// small whole numbers, so that sums are exact in whatever order they are taken.

#include "oocarray/algorithm/multiply.hpp"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "runtime/algorithm/multiply_plan.hpp"
#include "support/algorithm/faulty_store.hpp"
#include "support/algorithm/matrices.hpp"
#include "support/dying_case.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// Sums of such numbers are exact.
template <class T>
dense<T> random_matrix(std::mt19937_64& g, std::size_t rows, std::size_t columns) {
  return matrix_of<T>(rows, columns, [&] { return static_cast<int>(g() % 9) - 4; });
}

template <class T, class Layout = layout_right>
void multiply_at_random(int times, std::mt19937_64& g, store_kind kind = store_kind::in_memory,
                        file_order order = file_order::row_major) {
  const test_store nodes(kind);
  for (int n = rounds(times, 5 * times); n > 0; --n) {
    const auto extent = [&] { return between(g, 1, between(g, 0, 1) ? 20 : 300); };
    const std::size_t rows = extent(), depth = extent(), columns = extent();
    const std::uint64_t wish = between(g, 150_KiB, between(g, 0, 1) ? 200_KiB : 4_MiB);
    const multiply_options o{.threads = static_cast<unsigned>(between(g, 1, 8)), .mark = between(g, 0, 3) == 0};
    CAPTURE(rows, depth, columns, wish, o.threads);
    runtime rt(memory(nodes.staging() + 16 * 4_KiB + wish));
    array_options<T> ao{.order = order, .block = 4_KiB, .replace = true};
    if (!Layout::contiguous) ao.tile = {16, 16};
    ooc_array<T, 2, Layout> a{rt, nodes.handle(), "a", create, {rows, depth}, ao};
    ooc_array<T, 2, Layout> b{rt, nodes.handle(), "b", create, {depth, columns}, ao};
    ooc_array<T, 2, Layout> c{rt, nodes.handle(), "c", create, {rows, columns}, ao};
    const dense<T> left = random_matrix<T>(g, rows, depth), right = random_matrix<T>(g, depth, columns);
    store_matrix<T>(left, a);
    store_matrix<T>(right, b);
    const multiply_statistics done = multiply(a, b, c, o);
    CHECK(done.memory <= wish + 16 * 4_KiB);
    REQUIRE(holds<T>(c, left * right));

    std::vector<T> x(depth * 3), y(rows * 3);
    const dense<T> some = random_matrix<T>(g, depth, 3);
    std::copy_n(some.data(), x.size(), x.begin());
    multiply(a, x, y, o);
    const dense<T> product = left * Eigen::Map<const dense<T>>(x.data(), depth, 3);
    REQUIRE(std::equal(y.begin(), y.end(), product.data()));
  }
}

}  // namespace

TEST_CASE("a product of matrices in arrays is that of Eigen, and so are those with vectors") {
  std::mt19937_64 g(random_seed("product of matrices"));
  multiply_at_random<double>(12, g);
  multiply_at_random<float>(6, g);
  multiply_at_random<std::complex<double>>(5, g);
  multiply_at_random<std::complex<float>>(5, g);
}

TEST_CASE("matrices in tiles are multiplied too") {
  std::mt19937_64 g(random_seed("product of matrices in tiles"));
  multiply_at_random<double, layout_tiled>(5, g, store_kind::in_memory, file_order::tiled);
  multiply_at_random<double, layout_tiled>(3, g, store_kind::local);
}

TEST_CASE("a product reads and writes as often as its plan says") {
  std::mt19937_64 g(random_seed("traffic of a product"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 16 * 4_KiB + 1_MiB, 1));  // without read-ahead, bytes are exact
  constexpr std::size_t n = 400;                                // 3 * 1.2 MiB
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB}};
  ooc_array<double, 2> c{rt, nodes.handle(), "c", create, {n, n}, {.block = 4_KiB}};
  const dense<double> m = random_matrix<double>(g, n, n);
  store_matrix(m, a);
  a.writeback();
  const io_stats before = nodes.handle().stats();
  double part = 0;
  const multiply_statistics done = multiply(a, a, c, {.threads = 2, .progress = [&](const pass_progress& p) {
                                                        part = p.part();
                                                        return true;
                                                      }});
  const io_stats moved = nodes.handle().stats() - before;
  CHECK(done.passes + done.passes_of_b > 2);
  CHECK(done.bytes_read == (done.passes + done.passes_of_b) * n * n * sizeof(double));
  CHECK(done.bytes_written == n * n * sizeof(double));
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  CHECK(part == 1);
  CHECK(holds<double>(c, m * m));
}

TEST_CASE("a plan of a product fits its memory, and much memory reads each matrix once", "[own-store]") {
  std::mt19937_64 g(random_seed("plan of a product"));
  for (int n = 0; n < 300; ++n) {
    detail::multiply_facts f;
    const auto extent = [&] { return between(g, 1, std::uint64_t{1} << between(g, 0, 16)); };
    f.rows = extent();
    f.depth = extent();
    f.columns = extent();
    f.element_size = std::size_t{4} << between(g, 0, 2);
    f.b_in_memory = f.c_in_memory = between(g, 0, 3) == 0;
    const std::uint64_t all = (f.rows * f.depth + f.depth * f.columns + f.rows * f.columns) * f.element_size;
    const std::uint64_t memory = std::uint64_t{1} << between(g, 20, 33);
    CAPTURE(f.rows, f.depth, f.columns, f.element_size, f.b_in_memory, memory);
    const detail::multiply_plan p = detail::plan_multiply(f, memory);
    REQUIRE(p.tile_rows != 0);
    const std::uint64_t least = detail::least_multiply_memory(f);
    REQUIRE(detail::plan_multiply(f, least).tile_rows != 0);
    REQUIRE(detail::plan_multiply(f, least - 1).tile_rows == 0);
    REQUIRE(p.elements(f) * f.element_size <= memory);
    REQUIRE((p.depth_a == f.depth || p.depth_a % p.depth_b == 0));
    if (all <= memory) REQUIRE(p.passes_a + p.passes_b <= 2);
  }
  // The row of docs/algorithms.md.
  const detail::multiply_facts f{.rows = 8192, .depth = 8192, .columns = 8192};
  const detail::multiply_plan p = detail::plan_multiply(f, 360_MiB);
  CHECK(p.passes_a + p.passes_b <= 6);
}

TEST_CASE("of a product in memory any number of ranks pass on at a time what one operation carries") {
  for (const int ranks : {1, 2, 16, 17, 511, 512, 513, 100'000, 1 << 30}) {
    const std::uint64_t each = detail::passed_on_at_a_time(ranks);
    CAPTURE(ranks, each);
    CHECK(each >= 1);
    CHECK(each <= 4_MiB);
    if (ranks <= 100'000) CHECK(each * static_cast<std::uint64_t>(ranks) <= 64_MiB);
  }
}

TEST_CASE("matrices that cannot be multiplied are refused by name, with the remedy") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {20, 30}, {.block = 4_KiB}};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {30, 30}, {.block = 4_KiB}};
  ooc_array<double, 2> c{rt, nodes.handle(), "c", create, {20, 30}, {.block = 4_KiB}};
  CHECK_THROWS_WITH(multiply(b, a, c), Catch::Contains("'b', 30 by 30, times 'a', 20 by 30"));
  CHECK_THROWS_WITH(multiply(a, b, a), Catch::Contains("'a' is a factor"));
  {
    const auto held = c.pin({{0, 0}, {1, 10}});
    CHECK_THROWS_WITH(multiply(a, b, c), Catch::Contains("'c' has pinned regions"));
  }
  CHECK_THROWS_WITH(multiply(a, b, c, {.memory = 4_KiB}),
                    Catch::Contains("needs at least") && Catch::Contains("options.memory allows 4096"));
  std::vector<double> x(31), y(20);
  CHECK_THROWS_WITH(multiply(a, x, y), Catch::Contains("x has 31 elements"));
  CHECK_THROWS_WITH(multiply(a, std::span<const double>(), std::span<double>()), Catch::Contains("x has 0 elements"));
  std::vector<double> both(40);  // a is 20 by 30
  CHECK_THROWS_WITH(multiply(a, std::span(both).first(30), std::span(both).last(20)),
                    Catch::Contains("x and y overlap"));
  ooc_array<double, 2> without_file;
  CHECK_THROWS_WITH(multiply(without_file, x, y), Catch::Contains("this array has no file"));
  ooc_array<double, 2> s{rt, nodes.handle(), "s", create, {20, 30}, {.block = 4_KiB, .shared = true}};
  CHECK_THROWS_WITH(multiply(a, b, s), Catch::Contains("'s' is open together with other processes"));
}

TEST_CASE("a budget that is too small for a product says how much would do, and that does") {
  std::mt19937_64 g(random_seed("product in the least memory"));
  for (int n = rounds(6, 30); n > 0; --n) {
    const test_store nodes(store_kind::in_memory);
    const std::size_t rows = between(g, 1, 60), depth = between(g, 1, 3000), columns = between(g, 1, 60);
    const multiply_options o{.threads = static_cast<unsigned>(between(g, 1, 8))};
    const bool vectors = between(g, 0, 1);
    CAPTURE(rows, depth, columns, o.threads, vectors);
    const dense<double> left = random_matrix<double>(g, rows, depth), right = random_matrix<double>(g, depth, columns);
    std::uint64_t bytes = nodes.staging() + 12 * 4_KiB;
    for (int attempt = 0;; ++attempt) {
      REQUIRE(attempt < 2);
      runtime rt(memory(bytes));
      const array_options<double> ao{.block = 4_KiB, .replace = true};
      ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {rows, depth}, ao};
      ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {depth, columns}, ao};
      ooc_array<double, 2> c{rt, nodes.handle(), "c", create, {rows, columns}, ao};
      store_matrix<double>(left, a);
      store_matrix<double>(right, b);
      std::vector<double> y(rows * columns);
      try {
        if (vectors)
          multiply(a, std::span<const double>(right.data(), depth * columns), y, o);
        else
          multiply(a, b, c, o);
      } catch (const usage_error& e) {
        REQUIRE(e.code() == make_error_code(errc::budget_too_small));
        const std::string what = e.what(), give = "give the runtime ";
        CAPTURE(what);
        REQUIRE(what.find(give) != std::string::npos);
        bytes += std::stoull(what.substr(what.find(give) + give.size()));
        continue;
      }
      CHECK(attempt == 1);
      const dense<double> product = left * right;
      if (vectors)
        REQUIRE(std::equal(y.begin(), y.end(), product.data()));
      else
        REQUIRE(holds<double>(c, product));
      break;
    }
  }
}

TEST_CASE("an error, or the callback, in the middle of a product leaves a mark on it and no more", "[own-store]") {
  const bool cancels = GENERATE(true, false);
  const faulty_store nodes;
  const store s(nodes.core);
  std::mt19937_64 g(random_seed("interrupted product"));
  runtime rt(memory(nodes.core->staging_bytes() + 16 * 4_KiB + 300_KiB, 1));
  constexpr std::size_t n = 300;
  ooc_array<double, 2> a{rt, s, "a", create, {n, n}, {.block = 4_KiB}};
  ooc_array<double, 2> c{rt, s, "c", create, {n, n}, {.block = 4_KiB}};
  const dense<double> m = random_matrix<double>(g, n, n);
  store_matrix(m, a);
  a.writeback();
  const auto spoil = [&](const pass_progress& p) {
    if (p.part() < 0.6) return true;
    if (!cancels) nodes.node->add({.call = storage::io_kind::read, .error = std::make_error_code(std::errc::io_error)});
    return !cancels;
  };
  if (cancels)
    CHECK_THROWS_WITH(multiply(a, a, c, {.threads = 2, .progress = spoil}), Catch::Contains("cancelled"));
  else
    CHECK_THROWS_AS(multiply(a, a, c, {.threads = 2, .progress = spoil}), io_error);
  nodes.node->clear();
  CHECK(holds(a, m));
  c.close();
  CHECK_THROWS_WITH((ooc_array<double, 2>{rt, s, "c", open}),
                    Catch::Contains("in the middle of an algorithm") && Catch::Contains("product of 'a' and 'a'"));
  ooc_array<double, 2> again{rt, s, "c", open, {.block = 4_KiB, .unfinished = open_unfinished}};
  multiply(a, a, again, {.threads = 2});
  again.close();
  ooc_array<double, 2> whole{rt, s, "c", open, {.block = 4_KiB}};
  CHECK(holds<double>(whole, m * m));
}

// The next test runs this in a process of its own.
TEST_CASE("a product that dies", "[.multiply-dies]") {
  const store s = store::open(url_of_dying_case(), {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 16 * 4_KiB + 300_KiB));
  ooc_array<double, 2> a{rt, s, "a", create, {300, 300}, {.block = 4_KiB}};
  ooc_array<double, 2> c{rt, s, "c", create, {300, 300}, {.block = 4_KiB}};
  for (double& x : a) x = 1;
  a.writeback();
  multiply(a, a, c, {.progress = [](const pass_progress& p) {
             if (p.part() > 0.6) ::raise(SIGKILL);
             return true;
           }});
}

TEST_CASE("a process that dies in a product leaves a mark on it", "[own-store]") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "store").string();
  run_dying_case("[.multiply-dies]", path);
  const store s = store::open("local:" + path, {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 1_MiB));
  CHECK_THROWS_WITH((ooc_array<double, 2>{rt, s, "c", open}), Catch::Contains("product of 'a' and 'a'"));
  const ooc_array<double, 2> a{rt, s, "a", open};
  CHECK(std::all_of(a.begin(), a.end(), [](double x) { return x == 1; }));
}
