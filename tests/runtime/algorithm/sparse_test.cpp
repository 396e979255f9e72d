// Products of sparse matrices: those of a plain loop, whatever the rows, threads and memory.

#include "oocarray/algorithm/sparse.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "support/algorithm/matrices.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <class T, class Column, class Row>
struct plain_matrix {
  std::vector<T> values;
  std::vector<Column> columns;
  std::vector<Row> rows{0};
  std::size_t width = 1;

  /// Many rows have no elements, and some more than a thread takes at a time.  Small integers, so that sums are exact.
  plain_matrix(std::mt19937_64& g, std::size_t row_count) : width(between(g, 1, 2000)) {
    for (std::size_t i = 0; i < row_count; ++i) {
      const std::size_t dice = between(g, 0, 9);
      const std::size_t length = dice < 4 ? 0 : dice < 9 ? between(g, 1, 200) : between(g, 1, 80000);
      for (std::size_t k = 0; k < (values.size() > 300'000 ? 0 : length); ++k) {
        values.push_back(number_of<T>([&] { return static_cast<double>(between(g, 0, 8)) - 4; }));
        columns.push_back(static_cast<Column>(between(g, 0, width - 1)));
      }
      rows.push_back(static_cast<Row>(values.size()));
    }
  }
  std::vector<T> times(const std::vector<T>& x, std::size_t vectors) const {
    std::vector<T> y((rows.size() - 1) * vectors);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      for (auto k = static_cast<std::size_t>(rows[i]); k < static_cast<std::size_t>(rows[i + 1]); ++k)
        for (std::size_t v = 0; v < vectors; ++v)
          y[i * vectors + v] += values[k] * x[static_cast<std::size_t>(columns[k]) * vectors + v];
    return y;
  }
};

template <class T>
ooc_array<T, 1> stored(runtime& rt, const store& s, const char* name, const std::vector<T>& values) {
  ooc_array<T, 1> a{rt, s, name, create, {values.size()}, {.block = 4_KiB, .replace = true}};
  std::copy(values.begin(), values.end(), a.begin());
  a.writeback();
  return a;
}

template <class T, class Column, class Row>
void multiply_at_random(std::mt19937_64& g) {
  const plain_matrix<T, Column, Row> m(g, between(g, 1, 1000));
  const std::size_t vectors = between(g, 0, 1) ? 1 : between(g, 2, 5);
  std::vector<T> x(m.width * vectors);
  for (T& e : x) e = number_of<T>([&] { return static_cast<double>(between(g, 0, 8)) - 4; });
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + between(g, 200_KiB, 3_MiB)));
  const auto values = stored(rt, nodes.handle(), "values", m.values);
  const auto columns = stored(rt, nodes.handle(), "columns", m.columns);
  const auto rows = stored(rt, nodes.handle(), "rows", m.rows);
  const pass_options o{.threads = static_cast<unsigned>(between(g, 1, 4))};
  CAPTURE(m.values.size(), m.rows.size(), m.width, vectors, o.threads);
  std::vector<T> y((m.rows.size() - 1) * vectors, T(7));
  const pass_statistics done = multiply(sparse_matrix{values, columns, rows}, x, y, o);
  REQUIRE(y == m.times(x, vectors));
  CHECK(done.bytes_read == m.values.size() * (sizeof(T) + sizeof(Column)) + m.rows.size() * sizeof(Row));
  CHECK(done.over_bound() == 1);
}

}  // namespace

TEST_CASE("a sparse matrix times vectors is what a plain loop has") {
  std::mt19937_64 g(random_seed("sparse products"));
  for (int k = 0; k < rounds(4, 60); ++k) {
    multiply_at_random<double, std::int32_t, std::int64_t>(g);
    multiply_at_random<float, std::uint32_t, std::uint32_t>(g);
    multiply_at_random<std::complex<double>, std::int64_t, std::int32_t>(g);
  }
}

TEST_CASE("a sparse product is rounded alike by any number of threads") {
  std::mt19937_64 g(random_seed("rounded sparse products"));
  plain_matrix<double, int, int> m(g, 500);
  std::uniform_real_distribution<double> d(-1, 1);
  std::vector<double> x(m.width), first(m.rows.size() - 1), next(first);
  for (double& e : m.values) e = d(g);
  for (double& e : x) e = d(g);
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 400_KiB));
  const auto values = stored(rt, nodes.handle(), "values", m.values);
  const auto columns = stored(rt, nodes.handle(), "columns", m.columns);
  const auto rows = stored(rt, nodes.handle(), "rows", m.rows);
  multiply(sparse_matrix{values, columns, rows}, x, first, {.threads = 1});
  for (const unsigned threads : {2U, 3U, 8U}) {
    multiply(sparse_matrix{values, columns, rows}, x, next, {.threads = threads});
    CHECK(next == first);
  }
}

TEST_CASE("a sparse matrix without elements gives zeros, and one without rows nothing") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 400_KiB));
  const auto values = stored(rt, nodes.handle(), "values", std::vector<double>{});
  const auto columns = stored(rt, nodes.handle(), "columns", std::vector<int>{});
  const auto rows = stored(rt, nodes.handle(), "rows", std::vector<int>{0, 0, 0});
  std::vector<double> x(5, 1), y(2, 7);
  multiply(sparse_matrix{values, columns, rows}, x, y);
  CHECK(y == std::vector<double>{0, 0});
  const auto no_rows = stored(rt, nodes.handle(), "no rows", std::vector<int>{0});
  CHECK_NOTHROW(multiply(sparse_matrix{values, columns, no_rows}, x, std::span<double>()));
  const auto nothing = stored(rt, nodes.handle(), "nothing", std::vector<int>{});
  CHECK_THROWS_WITH(multiply(sparse_matrix{values, columns, nothing}, x, y), Catch::Contains("at least one: 0"));
}

TEST_CASE("what is no sparse matrix is refused by name, with the place") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  const std::size_t n = 100'000;  // in several pieces
  const auto values = stored(rt, nodes.handle(), "values", std::vector<double>(n, 1));
  std::vector<int> in_columns(n, 2);
  const auto columns = stored(rt, nodes.handle(), "columns", in_columns);
  std::vector<int> of_rows(1001);
  for (std::size_t i = 0; i <= 1000; ++i) of_rows[i] = static_cast<int>(i * 100);
  std::vector<double> x(3, 1), y(1000);
  const auto times = [&](const std::vector<int>& columns_now, const std::vector<int>& rows_now) {
    const auto c = stored(rt, nodes.handle(), "columns now", columns_now);
    const auto r = stored(rt, nodes.handle(), "rows now", rows_now);
    multiply(sparse_matrix{values, c, r}, x, y);
  };
  times(in_columns, of_rows);
  CHECK(y == std::vector<double>(1000, 100));
  for (const int bad : {-1, 3, 2'000'000'000}) {
    auto wrong = in_columns;
    wrong[77'777] = bad;
    CHECK_THROWS_WITH(times(wrong, of_rows), Catch::Contains("'values'") &&
                                                 Catch::Contains("element 77777 is in column " + std::to_string(bad)));
  }
  for (const std::size_t row : {0, 1, 500, 999, 1000}) {
    for (const int by : {-50'000, -101, 101, 50'000}) {
      auto wrong = of_rows;
      wrong[row] += by;
      CAPTURE(row, by);
      CHECK_THROWS_WITH(times(in_columns, wrong),
                        Catch::Contains("rows") && Catch::Contains("to the number of elements"));
    }
  }
  CHECK_THROWS_WITH(
      multiply(sparse_matrix{values, columns, stored(rt, nodes.handle(), "rows", of_rows)}, x, std::span(y).first(999)),
      Catch::Contains("y has 999 elements for 1000 rows"));
  std::vector<double> both(1002, 1);
  CHECK_THROWS_WITH(multiply(sparse_matrix{values, columns, stored(rt, nodes.handle(), "rows", of_rows)},
                             std::span(both).first(3), std::span(both).last(1000)),
                    Catch::Contains("x and y overlap"));
  CHECK(both == std::vector<double>(1002, 1));
}
