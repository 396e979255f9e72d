// Factorisations on several ranks: their factors give the matrix again and their solutions what they shall, on all
// ranks alike; strips to the left are read once by all together.
#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <complex>
#include <limits>
#include <numeric>

#include "mpi/own_rows.hpp"
#include "oocarray/algorithm/factorise.hpp"
#include "support/algorithm/factorised.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// Whether all ranks have the same numbers.
template <class T>
bool same_on_all(process_group& group, const std::vector<T>& numbers) {
  const auto mine = std::as_bytes(std::span(numbers));
  const auto all = group.all_gather("numbers", mine);
  return std::all_of(all.begin(), all.end(), [&](const auto& of_one) {
    return std::equal(of_one.begin(), of_one.end(), mine.begin(), mine.end());
  });
}

/// Arrays of one round on ranks of which one has less memory than the others.
struct round_on_ranks {
  round_on_ranks(std::mt19937_64& g, const store& s, const std::shared_ptr<process_group>& ranks, file_order order)
      : nodes(s),
        group(ranks),
        wish(between(g, 150_KiB, between(g, 0, 1) ? 250_KiB : 2_MiB)),
        options{.threads = static_cast<unsigned>(between(g, 1, 3)), .mark = between(g, 0, 3) == 0},
        order(order),
        rt(memory(s.core()->staging_bytes() + 32 * 4_KiB + wish + (ranks->rank() == ranks->size() / 2 ? 0 : 100_KiB))) {
  }
  template <class T, class Layout = layout_right>
  ooc_array<T, 2, Layout> array(const char* name, const dense<T>& m) {
    array_options<T> ao{.order = order, .block = 4_KiB, .replace = true, .group = group};
    if (!Layout::contiguous) ao.tile = {16, 16};
    ooc_array<T, 2, Layout> a{
        rt, nodes, name, create, {static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols())}, ao};
    store_own_rows(m, a);
    return a;
  }
  /// The numbers of a plan are those of what was done.
  void reported(const factor_statistics& planned, const factor_statistics& done) const {
    CHECK(planned.bytes_read == done.bytes_read);
    CHECK(planned.bytes_written == done.bytes_written);
    CHECK(done.memory <= rt.memory());
  }

  store nodes;
  std::shared_ptr<process_group> group;
  std::uint64_t wish;
  factor_options options;
  file_order order;
  runtime rt;
};

std::size_t extent(std::mt19937_64& g) { return between(g, 1, between(g, 0, 1) ? 20 : 300); }

factor_options only_plan(factor_options o) {
  o.plan = true;
  return o;
}

template <class T, class Layout = layout_right>
void cholesky_at_random(int times, std::uint64_t salt, file_order order = file_order::row_major) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int k = 0; k < times; ++k) {
    round_on_ranks r(g, st, group, order);
    const std::size_t n = extent(g);
    const bool in_place = between(g, 0, 1) == 0;
    CAPTURE(n, r.wish, r.options.threads, r.options.mark, in_place);
    const dense<T> some = random_matrix<T>(g, n, n);
    const dense<T> m = some * some.adjoint() + dense<T>::Identity(some.rows(), some.rows());
    const std::size_t vectors = between(g, 1, 20);
    const dense<T> b = random_matrix<T>(g, vectors, n);
    auto a = r.array<T, Layout>("factorise/a", m);
    auto other = r.array<T, Layout>("factorise/u", dense<T>::Zero(m.rows(), m.cols()));
    auto x = r.array<T, Layout>("factorise/x", b);
    const factor_statistics planned =
        in_place ? cholesky(a, only_plan(r.options)) : cholesky(a, other, only_plan(r.options));
    const factor_statistics done = in_place ? cholesky(a, r.options) : cholesky(a, other, r.options);
    r.reported(planned, done);
    const dense<T> found = stored_matrix(in_place ? a : other);
    const dense<T> u = found.template triangularView<Eigen::Upper>();
    REQUIRE((u.adjoint() * u - m).norm() <= rounding<T>(n) * m.norm());
    if (in_place)
      REQUIRE(dense<T>(found - u) == dense<T>(m.template triangularView<Eigen::StrictlyLower>()));
    else
      REQUIRE((found - u).isZero(0));
    const auto is_solution = [&](const dense<T>& lines) {
      const dense<T> solved = lines.transpose();
      return (m * solved - b.transpose()).norm() <= rounding<T>(n) * m.norm() * solved.norm();
    };
    group->barrier("all have compared");
    const auto& factors = in_place ? a : other;
    solve_cholesky(factors, x, r.options);
    REQUIRE(is_solution(stored_matrix(x)));
    dense<T> held = b;
    solve_cholesky(factors, std::span<T>(held.data(), static_cast<std::size_t>(held.size())), r.options);
    REQUIRE(is_solution(held));
    group->barrier("all have compared again");
    a.close();
    other.close();
    x.close();
  }
}

template <class T, class Layout = layout_right>
void lu_at_random(int times, std::uint64_t salt, file_order order = file_order::row_major) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int k = 0; k < times; ++k) {
    round_on_ranks r(g, st, group, order);
    const std::size_t n = extent(g), vectors = between(g, 1, 20);
    const bool alone = between(g, 0, 3) == 0;  // each rank opens the factors by itself
    CAPTURE(n, r.wish, r.options.threads, r.options.mark, alone);
    const dense<T> lines = random_matrix<T>(g, n, n), m = lines.transpose(), b = random_matrix<T>(g, vectors, n);
    auto f = r.array<T, Layout>("factorise/f", lines);
    auto x = r.array<T, Layout>("factorise/x", b);
    std::vector<std::size_t> pivots(n);
    const factor_statistics planned = lu(f, pivots, only_plan(r.options));
    const factor_statistics done = lu(f, pivots, r.options);
    r.reported(planned, done);
    CHECK(sum_of_ranks(*group, done.bytes_written) == n * n * sizeof(T));
    REQUIRE(same_on_all(*group, pivots));
    const auto is_solution = [&](const dense<T>& found) {
      const dense<T> solved = found.transpose();
      return (m * solved - b.transpose()).norm() <= rounding<T>(n) * m.norm() * solved.norm();
    };
    if (alone) {
      f.close();
      const array_options<T> ao{
          .tile = Layout::contiguous ? std::vector<std::size_t>{} : std::vector<std::size_t>{16, 16}, .block = 4_KiB};
      f = ooc_array<T, 2, Layout>(r.rt, st, "factorise/f", open_read_only, ao);
    }
    solve_lu(f, pivots, x, r.options);
    REQUIRE(is_solution(stored_matrix(x)));
    if (!alone) {
      dense<T> held = b;
      solve_lu(f, pivots, std::span<T>(held.data(), static_cast<std::size_t>(held.size())), r.options);
      REQUIRE(is_solution(held));
    }
    group->barrier("all have compared");
    f.close();
    x.close();
  }
}

template <class T>
void qr_at_random(int times, std::uint64_t salt) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int k = 0; k < times; ++k) {
    round_on_ranks r(g, st, group, file_order::row_major);
    const std::size_t rows = extent(g), columns = extent(g), both = std::min(rows, columns);
    CAPTURE(rows, columns, r.wish, r.options.threads, r.options.mark);
    const dense<T> lines = random_matrix<T>(g, columns, rows), m = lines.transpose();
    auto f = r.array<T>("factorise/f", lines);
    std::vector<T> tau(both);
    r.reported(qr(f, tau, only_plan(r.options)), qr(f, tau, r.options));
    REQUIRE(same_on_all(*group, tau));
    const dense<T> upper = dense<T>(stored_matrix(f).transpose()).template triangularView<Eigen::Upper>();
    const dense<T> top = upper.topRows(static_cast<Eigen::Index>(both));
    group->barrier("all have read R");
    auto q = r.array<T>("factorise/q", dense<T>(dense<T>::Identity(top.rows(), lines.cols())));
    multiply_q(f, tau, q, r.options);
    const dense<T> columns_of_q = stored_matrix(q).transpose();
    REQUIRE((columns_of_q.adjoint() * columns_of_q - dense<T>::Identity(top.rows(), top.rows())).norm() <=
            rounding<T>(rows));
    REQUIRE((columns_of_q * top - m).norm() <= rounding<T>(rows) * m.norm());
    group->barrier("all have compared");
    f.close();
    q.close();
  }
}

}  // namespace

TEST_CASE("ranks make a Cholesky factor that gives the matrix again, and solve by it") {
  cholesky_at_random<double>(6, 71);
#ifndef OOC_TEST_FAST  // each type takes the compiler half a minute
  cholesky_at_random<std::complex<float>>(3, 72);
#endif
  cholesky_at_random<double, layout_tiled>(2, 73, file_order::tiled);
}

TEST_CASE("ranks factorise with partial pivoting, have the same pivots, and solve") {
  lu_at_random<double>(6, 74);
#ifndef OOC_TEST_FAST
  lu_at_random<float>(3, 75);
#endif
  lu_at_random<double, layout_tiled>(2, 76, file_order::tiled);
}

TEST_CASE("Q of ranks is orthogonal, and Q R is the matrix, also with more columns than rows") {
  qr_at_random<double>(6, 77);
#ifndef OOC_TEST_FAST
  qr_at_random<std::complex<double>>(3, 78);
#endif
}

TEST_CASE("what ranks read from the store for a factorisation is what its statistics say, less than one would read") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(79);
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 32 * 4_KiB + 300_KiB, 1));  // without read-ahead, bytes are exact
  const std::size_t n = 300;
  ooc_array<double, 2> a{rt, st, "factorise/a", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}};
  store_own_rows(random_matrix<double>(g, n, n), a);
  a.sync();
  std::vector<std::size_t> pivots(n);
  group->barrier("all is in the store");
  const io_stats before = st.stats();
  const factor_statistics done = lu(a, pivots, {.threads = 1});
  const io_stats moved = st.stats() - before;
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  ooc_array<double, 2> own{rt, st, "factorise/" + std::to_string(group->rank()), create, {n, n}, {.replace = true}};
  const factor_statistics alone = lu(own, pivots, {.threads = 1, .plan = true});
  REQUIRE(alone.panels > 2);
  CHECK(done.panels <= alone.panels / static_cast<std::uint64_t>(group->size()) + 1);
  if (group->size() > 1) CHECK(sum_of_ranks(*group, done.bytes_read) < alone.bytes_read);
  group->barrier("all have compared");
}

TEST_CASE("a column that no rank can use is named on all, and leaves one mark") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 1_MiB));
  const std::size_t n = 200;
  ooc_array<double, 2> a{rt, st, "factorise/a", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}};
  dense<double> m = dense<double>::Identity(n, n);
  m(150, 150) = -1;
  store_own_rows(m, a);
  CHECK_THROWS_WITH(cholesky(a), Catch::Contains("its first 151 rows and columns are not"));
  a.close();
  CHECK_THROWS_WITH((ooc_array<double, 2>{rt, st, "factorise/a", open, {.group = group}}),
                    Catch::Contains("in the middle of an algorithm") && Catch::Contains("Cholesky"));
  group->barrier("all have looked");
}

TEST_CASE("what one rank cancels, or cannot read or write, ends a factorisation on all") {
  const auto group = all_ranks();
  const int what = GENERATE(0, 1, 2);
  CAPTURE(what);
  std::mt19937_64 g = common_source(80);
  const faulty_store nodes;
  runtime rt(memory(nodes.handle.core()->staging_bytes() + 32 * 4_KiB + 250_KiB, 1));
  const std::size_t n = 240;
  const array_options<double> ao{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, nodes.handle, "factorise/a", create, {n, n}, ao};
  const dense<double> lines = random_matrix<double>(g, n, n);
  store_own_rows(lines, a);
  a.sync();
  std::vector<std::size_t> pivots(n);
  const bool mine = group->rank() + 1 == group->size();
  if (mine && what != 0)
    nodes.fail({.call = what == 1 ? storage::io_kind::write : storage::io_kind::read,
                .error = std::make_error_code(std::errc::io_error)});
  const auto spoil = [&](const pass_progress& p) { return !mine || what != 0 || p.part() < 0.9; };
  if (what == 0)
    CHECK_THROWS_WITH(lu(a, pivots, {.threads = 2, .progress = spoil}), Catch::Contains("cancelled"));
  else
    CHECK_THROWS_AS(lu(a, pivots, {.threads = 2, .progress = spoil}), io_error);
  nodes.clear();
  a.close();
  ooc_array<double, 2> again{rt, nodes.handle, "factorise/a", open, {.group = group, .unfinished = open_unfinished}};
  store_own_rows(lines, again);
  lu(again, pivots);
  dense<double> x = random_matrix<double>(g, 1, n);
  const dense<double> b = x;
  solve_lu(again, pivots, std::span<double>(x.data(), n));
  CHECK((lines.transpose() * x.transpose() - b.transpose()).norm() <= rounding<double>(n) * lines.norm() * x.norm());
  group->barrier("all have compared");
}

TEST_CASE("a rank that has too little memory for a factorisation says so on all") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(81);
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 1_MiB));
  const std::size_t n = 100;
  ooc_array<double, 2> a{rt, st, "factorise/a", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}};
  store_own_rows(random_matrix<double>(g, n, n), a);
  std::vector<double> tau(n);
  CHECK_THROWS_WITH(qr(a, tau, {.memory = group->rank() == 0 ? 4_KiB : 0}),
                    Catch::Contains("options.memory allows 4096"));
  qr(a, tau);
  group->barrier("all are done");
}
