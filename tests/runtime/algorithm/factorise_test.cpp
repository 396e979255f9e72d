// Factorisations: their factors give the matrix again, and their solutions what they shall, within the rounding of a
// backward stable method; in the budget, with the traffic of the plan.

#include "oocarray/algorithm/factorise.hpp"

#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <limits>

#include "runtime/algorithm/factor_plan.hpp"
#include "support/algorithm/factorised.hpp"
#include "support/algorithm/faulty_store.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <class T>
dense<T> positive_matrix(std::mt19937_64& g, std::size_t n) {
  const dense<T> m = random_matrix<T>(g, n, n);
  return m * m.adjoint() + dense<T>::Identity(m.rows(), m.rows());
}

/// Arrays of one test round, small blocks and a random budget.
template <class T, class Layout = layout_right>
struct round_of_arrays {
  round_of_arrays(std::mt19937_64& g, store_kind kind, file_order order)
      : nodes(kind),
        options{.threads = static_cast<unsigned>(between(g, 1, 6)), .mark = between(g, 0, 3) == 0},
        wish(between(g, 0, 1) ? between(g, 150_KiB, 400_KiB) : between(g, 400_KiB, 6_MiB)),
        rt(memory(nodes.staging() + 16 * 4_KiB + wish)) {
    ao.order = order;
    ao.block = 4_KiB;
    ao.replace = true;
    if (!Layout::contiguous) ao.tile = {16, 16};
  }
  ooc_array<T, 2, Layout> array(const char* name, const dense<T>& m) {
    ooc_array<T, 2, Layout> a{
        rt, nodes.handle(), name, create, {static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols())}, ao};
    store_matrix(m, a);
    return a;
  }

  test_store nodes;
  factor_options options;
  std::uint64_t wish;
  runtime rt;
  array_options<T> ao;
};

/// One that a column of so many elements, and eight of them, fit into several times.
std::size_t extent(std::mt19937_64& g) { return between(g, 1, between(g, 0, 1) ? 20 : 300); }

template <class T, class Layout = layout_right>
void cholesky_at_random(int times, std::mt19937_64& g, store_kind kind = store_kind::in_memory,
                        file_order order = file_order::row_major) {
  for (int k = rounds(times, 5 * times); k > 0; --k) {
    round_of_arrays<T, Layout> r(g, kind, order);
    const std::size_t n = extent(g);
    CAPTURE(n, r.wish, r.options.threads);
    const dense<T> m = positive_matrix<T>(g, n), b = random_matrix<T>(g, 3, n);
    auto a = r.array("a", m);
    const bool in_place = between(g, 0, 1) == 0;
    auto other = r.array("u", dense<T>::Zero(m.rows(), m.cols()));
    const factor_statistics done = in_place ? cholesky(a, r.options) : cholesky(a, other, r.options);
    CHECK(done.memory <= r.wish + 16 * 4_KiB);
    const dense<T> found = stored_matrix(in_place ? a : other);
    const dense<T> u = found.template triangularView<Eigen::Upper>();
    REQUIRE((u.adjoint() * u - m).norm() <= rounding<T>(n) * m.norm());
    const dense<T> below = found - u;
    if (in_place)
      REQUIRE(below == dense<T>(m.template triangularView<Eigen::StrictlyLower>()));
    else {
      REQUIRE(below.isZero(0));
      REQUIRE(holds(a, m));
    }
    const auto& factors = in_place ? a : other;
    const auto is_solution = [&](const dense<T>& x) {
      const dense<T> solved = x.transpose();
      return (m * solved - b.transpose()).norm() <= rounding<T>(n) * m.norm() * solved.norm();
    };
    dense<T> x = b;
    solve_cholesky(factors, std::span<T>(x.data(), static_cast<std::size_t>(x.size())), r.options);
    REQUIRE(is_solution(x));
    auto vectors = r.array("x", b);
    solve_cholesky(factors, vectors, r.options);
    REQUIRE(is_solution(stored_matrix(vectors)));
  }
}

template <class T, class Layout = layout_right>
void lu_at_random(int times, std::mt19937_64& g, store_kind kind = store_kind::in_memory,
                  file_order order = file_order::row_major) {
  for (int k = rounds(times, 5 * times); k > 0; --k) {
    round_of_arrays<T, Layout> r(g, kind, order);
    const std::size_t n = extent(g);
    CAPTURE(n, r.wish, r.options.threads);
    const dense<T> lines = random_matrix<T>(g, n, n), m = lines.transpose(), b = random_matrix<T>(g, 3, n);
    auto f = r.array("f", lines);
    std::vector<std::size_t> pivots(n);
    const factor_statistics done = lu(f, pivots, r.options);
    CHECK(done.memory <= r.wish + 16 * 4_KiB);
    const dense<T> found = stored_matrix(f).transpose();
    REQUIRE(dense<T>(found.template triangularView<Eigen::StrictlyLower>()).cwiseAbs().maxCoeff() <=
            1 + rounding<T>(1));
    T determinant = 1, expected = m.determinant();
    for (std::size_t c = 0; c < n; ++c) {
      REQUIRE((c <= pivots[c] && pivots[c] < n));
      const auto i = static_cast<Eigen::Index>(c);
      determinant *= pivots[c] == c ? found(i, i) : -found(i, i);
    }
    if (n < 30) REQUIRE(std::abs(determinant - expected) <= 1000 * rounding<T>(n) * std::abs(expected) + 1e-6);
    const auto is_solution = [&](const dense<T>& x) {
      const dense<T> solved = x.transpose();
      return (m * solved - b.transpose()).norm() <= rounding<T>(n) * m.norm() * solved.norm();
    };
    dense<T> x = b;
    solve_lu(f, pivots, std::span<T>(x.data(), static_cast<std::size_t>(x.size())), r.options);
    REQUIRE(is_solution(x));
    auto vectors = r.array("x", b);
    solve_lu(f, pivots, vectors, r.options);
    REQUIRE(is_solution(stored_matrix(vectors)));
  }
}

template <class T, class Layout = layout_right>
void qr_at_random(int times, std::mt19937_64& g, store_kind kind = store_kind::in_memory,
                  file_order order = file_order::row_major) {
  for (int k = rounds(times, 5 * times); k > 0; --k) {
    round_of_arrays<T, Layout> r(g, kind, order);
    const std::size_t rows = extent(g), columns = extent(g), both = std::min(rows, columns);
    CAPTURE(rows, columns, r.wish, r.options.threads);
    const dense<T> lines = random_matrix<T>(g, columns, rows), m = lines.transpose();
    auto f = r.array("f", lines);
    std::vector<T> tau(both);
    const factor_statistics done = qr(f, tau, r.options);
    CHECK(done.memory <= r.wish + 16 * 4_KiB);
    const dense<T> found = stored_matrix(f).transpose();
    const dense<T> upper = found.topRows(static_cast<Eigen::Index>(both)).template triangularView<Eigen::Upper>();
    auto q = r.array("q", dense<T>::Identity(static_cast<Eigen::Index>(both), static_cast<Eigen::Index>(rows)));
    multiply_q(f, tau, q, r.options);
    const dense<T> of_q = stored_matrix(q).transpose();
    REQUIRE((of_q.adjoint() * of_q - dense<T>::Identity(of_q.cols(), of_q.cols())).norm() <= rounding<T>(rows));
    REQUIRE((of_q * upper - m).norm() <= rounding<T>(rows) * m.norm());

    const dense<T> b = random_matrix<T>(g, 2, rows);
    dense<T> turned = b;
    const std::span<T> there(turned.data(), static_cast<std::size_t>(turned.size()));
    multiply_q_adjoint(f, tau, there, r.options);
    multiply_q(f, tau, there, r.options);
    REQUIRE((turned - b).norm() <= rounding<T>(rows) * b.norm());
    const std::size_t first = between(g, 1, both);
    const dense<T> some = m.leftCols(static_cast<Eigen::Index>(first));
    dense<T> by_some = b;
    solve_qr(f, tau, first, std::span<T>(by_some.data(), static_cast<std::size_t>(by_some.size())), r.options);
    const dense<T> of_some = by_some.leftCols(static_cast<Eigen::Index>(first)).transpose();
    REQUIRE((some.adjoint() * (some * of_some - b.transpose())).norm() <=
            rounding<T>(rows) * some.norm() * (some.norm() * of_some.norm() + b.norm()));

    if (columns > rows) continue;
    dense<T> x = b;
    solve_qr(f, tau, std::span<T>(x.data(), static_cast<std::size_t>(x.size())), r.options);
    auto vectors = r.array("x", b);
    solve_qr(f, tau, vectors, r.options);
    const dense<T> solved = x.leftCols(static_cast<Eigen::Index>(columns)).transpose();
    const dense<T> rest = m * solved - b.transpose();  // at right angles to all columns
    REQUIRE((m.adjoint() * rest).norm() <= rounding<T>(rows) * m.norm() * (m.norm() * solved.norm() + b.norm()));
    REQUIRE(std::abs(rest.norm() - x.rightCols(static_cast<Eigen::Index>(rows - columns)).norm()) <=
            100 * rounding<T>(rows) * (m.norm() * solved.norm() + b.norm()));
    REQUIRE((stored_matrix(vectors) - x).norm() <= 100 * rounding<T>(rows) * (x.norm() + 1));
  }
}

}  // namespace

// Each type takes the compiler half a minute.
TEST_CASE("a Cholesky factor gives the matrix again, and solves") {
  std::mt19937_64 g(random_seed("Cholesky"));
  cholesky_at_random<double>(6, g);
#if !defined(OOC_TEST_FAST) || !defined(__SANITIZE_ADDRESS__)
  cholesky_at_random<std::complex<float>>(2, g);
#endif
#ifndef OOC_TEST_FAST
  cholesky_at_random<float>(3, g);
  cholesky_at_random<std::complex<double>>(3, g);
#endif
  cholesky_at_random<double, layout_tiled>(3, g, store_kind::in_memory, file_order::tiled);
}

TEST_CASE("LU with partial pivoting solves, and gives the determinant") {
  std::mt19937_64 g(random_seed("LU"));
  lu_at_random<double>(6, g);
#if !defined(OOC_TEST_FAST) || !defined(__SANITIZE_ADDRESS__)
  lu_at_random<std::complex<float>>(2, g);
#endif
#ifndef OOC_TEST_FAST
  lu_at_random<float>(3, g);
  lu_at_random<std::complex<double>>(3, g);
#endif
  lu_at_random<double, layout_tiled>(3, g, store_kind::local);
}

TEST_CASE("Q is orthogonal, Q R is the matrix, and least squares leave a rest at right angles") {
  std::mt19937_64 g(random_seed("QR"));
  qr_at_random<double>(6, g);
#if !defined(OOC_TEST_FAST) || !defined(__SANITIZE_ADDRESS__)
  qr_at_random<std::complex<float>>(2, g);
#endif
#ifndef OOC_TEST_FAST
  qr_at_random<float>(3, g);
  qr_at_random<std::complex<double>>(3, g);
#endif
  qr_at_random<double, layout_tiled>(3, g, store_kind::in_memory, file_order::tiled);
}

TEST_CASE("a factorisation reads and writes as often as its plan says") {
  std::mt19937_64 g(random_seed("traffic of a factorisation"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 16 * 4_KiB + 700_KiB, 1));  // without read-ahead, bytes are exact
  constexpr std::size_t n = 512;                                  // 2 MiB
  const dense<double> m = positive_matrix<double>(g, n);
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB}};
  double part = 0;
  const factor_options o{.threads = 2, .progress = [&](const pass_progress& p) {
                           part = p.part();
                           return true;
                         }};
  const auto run = [&](auto&& algorithm) {
    store_matrix(m, a);
    a.writeback();
    const io_stats before = nodes.handle().stats();
    part = 0;
    const factor_statistics done = algorithm();
    const io_stats moved = nodes.handle().stats() - before;
    CHECK(done.panels > 2);
    CHECK(moved.bytes_read == done.bytes_read);
    CHECK(moved.bytes_written == done.bytes_written);
    CHECK(part == 1);
    return done;
  };
  constexpr std::uint64_t all = n * n * sizeof(double);
  std::vector<std::size_t> pivots(n);
  std::vector<double> tau(n);
  const factor_statistics of_lu = run([&] { return lu(a, pivots, o); });
  CHECK(of_lu.bytes_written == all);
  CHECK(of_lu.bytes_read > all);
  CHECK(of_lu.bytes_read <= all + all * of_lu.panels / 2);
  const factor_statistics of_qr = run([&] { return qr(a, tau, o); });
  CHECK(of_qr.bytes_read == of_lu.bytes_read);
  part = 0;
  std::vector<double> x(n);
  const factor_statistics solved = solve_qr(a, tau, std::span(x), o);  // reads the diagonal strips twice
  CHECK(part == 1);
  CHECK(solved.bytes_read > all);
  CHECK(solved.bytes_read <= all + n * detail::widest_strip * sizeof(double));
}

TEST_CASE("a plan of a factorisation fits its memory, and much memory reads each column once", "[own-store]") {
  std::mt19937_64 g(random_seed("plan of a factorisation"));
  for (int k = 0; k < 300; ++k) {
    detail::factor_facts f;
    const auto some = [&] { return between(g, 1, std::uint64_t{1} << between(g, 0, 16)); };
    f.rows = some();
    f.below_diagonal_only = between(g, 0, 1) == 0;
    f.columns = f.below_diagonal_only ? f.rows : some();
    f.always_passed = between(g, 0, 3) == 0;
    f.element_size = std::size_t{4} << between(g, 0, 2);
    const std::uint64_t least = detail::least_factor_memory(f);
    const std::uint64_t bytes = least << between(g, 0, 12);
    CAPTURE(f.rows, f.columns, f.below_diagonal_only, f.always_passed, f.element_size, bytes);
    const detail::factor_plan p = detail::plan_factorisation(f, bytes);
    REQUIRE(p.strip != 0);
    REQUIRE(detail::plan_factorisation(f, least - 1).strip == 0);
    REQUIRE(p.elements() * f.element_size <= bytes);
    REQUIRE(p.edges.front() == 0);
    REQUIRE(p.edges.back() == f.columns);
    for (std::size_t e = 1; e < p.edges.size(); ++e) {
      REQUIRE(p.edges[e - 1] < p.edges[e]);
      REQUIRE((p.edges[e] % p.strip == 0 || p.edges[e] == f.columns));
    }
    constexpr std::uint64_t strip = detail::widest_strip;
    const std::uint64_t all = std::uint64_t{f.rows} * f.columns, beside = strip * (3 * strip + f.columns);
    if ((all + beside) * f.element_size <= bytes && !f.always_passed) REQUIRE(p.edges.size() == 2);
  }
  // The row of docs/algorithms.md.
  const std::uint64_t panels = detail::plan_factorisation({.rows = 12000, .columns = 12000}, 248_MiB).edges.size() - 1;
  CHECK(panels <= 6);
}

TEST_CASE("matrices that cannot be factorised are refused by name, with the column or the remedy") {
  std::mt19937_64 g(random_seed("refused factorisation"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 2_MiB));
  const auto array = [&](const char* name, const dense<double>& m) {
    ooc_array<double, 2> a{rt,
                           nodes.handle(),
                           name,
                           create,
                           {static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols())},
                           {.block = 4_KiB, .replace = true}};
    store_matrix(m, a);
    return a;
  };
  auto wide = array("wide", random_matrix<double>(g, 20, 30)),
       narrow = array("narrow", random_matrix<double>(g, 30, 20));
  CHECK_THROWS_WITH(cholesky(wide),
                    Catch::Contains("'wide'") && Catch::Contains("20 by 30") && Catch::Contains("square"));
  std::vector<std::size_t> pivots(20);
  CHECK_THROWS_WITH(lu(wide, std::span(pivots).first(19)), Catch::Contains("19 numbers") && Catch::Contains("20"));
  lu(wide, pivots);
  std::vector<double> x(30);
  CHECK_THROWS_WITH(solve_lu(wide, pivots, std::span(x)), Catch::Contains("square"));
  std::vector<double> tau(20);
  qr(narrow, tau);
  CHECK_THROWS_WITH(solve_qr(narrow, tau, std::span(x).first(20)), Catch::Contains("no single solution"));
  CHECK_THROWS_WITH(solve_qr(narrow, tau, 21, std::span(x).first(20)),
                    Catch::Contains("21 of its columns") && Catch::Contains("20 are factorised"));
  CHECK_THROWS_WITH(multiply_q(wide, tau, std::span(x).first(29)), Catch::Contains("29 elements are no vectors of 30"));
  CHECK_THROWS_WITH(multiply_q(wide, tau, narrow),
                    Catch::Contains("the vectors have 20 elements") && Catch::Contains("30 rows"));
  CHECK_THROWS_WITH(multiply_q(wide, tau, wide), Catch::Contains("cannot be the vectors as well"));

  for (const std::size_t bad : {0, 1, 100, 200, 299}) {  // in several strips
    dense<double> m = positive_matrix<double>(g, 300);
    auto a = array("a", m);
    cholesky(a);
    a(bad, bad) = 0;
    std::vector<double> b(300);
    CHECK_THROWS_WITH(solve_cholesky(a, std::span(b)),
                      Catch::Contains("zero in column") || Catch::Contains("not positive definite"));
    m(static_cast<Eigen::Index>(bad), static_cast<Eigen::Index>(bad)) = -1;
    auto indefinite = array("indefinite", m);
    try {
      cholesky(indefinite);
      FAIL("it was factorised");
    } catch (const usage_error& e) {
      CHECK(e.code() == make_error_code(errc::singular));
      CHECK_THAT(e.what(),
                 Catch::Contains("'indefinite'") && Catch::Contains("first " + std::to_string(bad + 1) + " rows"));
    }
    dense<double> singular = random_matrix<double>(g, 300, 300);
    singular.row(static_cast<Eigen::Index>(bad)).setZero();
    auto s = array("s", singular);
    pivots.resize(300);
    lu(s, pivots);
    CHECK_THROWS_WITH(solve_lu(s, pivots, std::span(b)), Catch::Contains("zero in column " + std::to_string(bad)));
  }

  auto a = array("a", positive_matrix<double>(g, 100));
  {
    const auto held = a.pin({{0, 0}, {1, 10}});
    CHECK_THROWS_WITH(cholesky(a), Catch::Contains("'a' has pinned regions"));
  }
  CHECK_THROWS_WITH(cholesky(a, {.memory = 4_KiB}),
                    Catch::Contains("needs at least") && Catch::Contains("options.memory allows 4096"));
  ooc_array<double, 2> s{rt, nodes.handle(), "shared", create, {100, 100}, {.block = 4_KiB, .shared = true}};
  CHECK_THROWS_WITH(cholesky(a, s), Catch::Contains("'shared' is open together with other processes"));
  CHECK_THROWS_WITH(cholesky(a, narrow), Catch::Contains("'narrow'") && Catch::Contains("same shape"));
}

TEST_CASE("elements that are no numbers are not positive definite, and go through LU and QR") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 2_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {50, 50}, {.block = 4_KiB}};
  const auto fill = [&] {
    for (double& x : a) x = std::numeric_limits<double>::quiet_NaN();
  };
  fill();
  CHECK_THROWS_WITH(cholesky(a), Catch::Contains("not positive definite"));
  fill();
  std::vector<std::size_t> pivots(50);
  lu(a, pivots);
  CHECK(std::all_of(pivots.begin(), pivots.end(), [](std::size_t p) { return p < 50; }));
  fill();
  std::vector<double> tau(50);
  CHECK_NOTHROW(qr(a, tau));
}

TEST_CASE("a budget that is too small for a factorisation says how much would do, and that does") {
  std::mt19937_64 g(random_seed("factorisation in the least memory"));
  for (int k = rounds(6, 30); k > 0; --k) {
    const test_store nodes(store_kind::in_memory);
    const std::size_t n = between(g, 250, 1500);
    const factor_options o{.threads = static_cast<unsigned>(between(g, 1, 8))};
    CAPTURE(n, o.threads);
    std::uint64_t bytes = nodes.staging() + 12 * 4_KiB;
    for (int attempt = 0;; ++attempt) {
      REQUIRE(attempt < 2);
      runtime rt(memory(bytes));
      ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB, .replace = true}};
      for (std::size_t i = 0; i < n; ++i) a(i, i) = 4;
      try {
        cholesky(a, o);
      } catch (const usage_error& e) {
        REQUIRE(e.code() == make_error_code(errc::budget_too_small));
        const std::string what = e.what(), give = "give the runtime ";
        CAPTURE(what);
        REQUIRE(what.find(give) != std::string::npos);
        bytes += std::stoull(what.substr(what.find(give) + give.size()));
        continue;
      }
      CHECK(attempt == 1);
      for (std::size_t i = 0; i < n; ++i) REQUIRE(a(i, i) == 2);
      break;
    }
  }
}

TEST_CASE("an error, or the callback, in the middle of a factorisation leaves a mark on it", "[own-store]") {
  const bool cancels = GENERATE(true, false);
  const faulty_store nodes;
  const store s(nodes.core);
  std::mt19937_64 g(random_seed("interrupted factorisation"));
  runtime rt(memory(nodes.core->staging_bytes() + 16 * 4_KiB + 300_KiB, 1));
  constexpr std::size_t n = 300;
  ooc_array<double, 2> a{rt, s, "a", create, {n, n}, {.block = 4_KiB}};
  ooc_array<double, 2> u{rt, s, "u", create, {n, n}, {.block = 4_KiB}};
  const dense<double> m = positive_matrix<double>(g, n);
  store_matrix(m, a);
  a.writeback();
  const auto spoil = [&](const pass_progress& p) {
    if (p.part() < 0.6) return true;
    if (!cancels) nodes.node->add({.call = storage::io_kind::read, .error = std::make_error_code(std::errc::io_error)});
    return !cancels;
  };
  if (cancels)
    CHECK_THROWS_WITH(cholesky(a, u, {.threads = 2, .progress = spoil}), Catch::Contains("cancelled"));
  else
    CHECK_THROWS_AS(cholesky(a, u, {.threads = 2, .progress = spoil}), io_error);
  nodes.node->clear();
  CHECK(holds(a, m));
  u.close();
  CHECK_THROWS_WITH((ooc_array<double, 2>{rt, s, "u", open}), Catch::Contains("in the middle of an algorithm") &&
                                                                  Catch::Contains("Cholesky factorisation of 'a'"));
  ooc_array<double, 2> again{rt, s, "u", open, {.block = 4_KiB, .unfinished = open_unfinished}};
  cholesky(a, again, {.threads = 2});
  again.close();
  const ooc_array<double, 2> whole{rt, s, "u", open, {.block = 4_KiB}};
  const dense<double> factor = stored_matrix(whole).triangularView<Eigen::Upper>();
  CHECK((factor.adjoint() * factor - m).norm() <= rounding<double>(n) * m.norm());
}
