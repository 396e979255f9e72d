// Copies, transpositions and elementwise passes on several ranks: what one process computes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "mpi/ranks.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/fft.hpp"
#include "oocarray/algorithm/sparse.hpp"
#include "support/algorithm/random_copy.hpp"
#include "support/algorithm/random_passes.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

double start_value(std::size_t n) { return std::sin(static_cast<double>(n)); }

/// The rank writes its own rows.
template <class Array>
void fill_own(Array& a) {
  const std::size_t row = a.size() / a.extent(0);
  const auto [first, last] = a.local_rows();
  for (std::size_t e = first * row; e < last * row; ++e) a.element({e / row, e % row}) = start_value(e);
}

/// The elements that differ from expected(i, j), as this rank sees them.
template <class Array, class F>
std::size_t wrong(const Array& a, F expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) count += a(i, j) != expected(i, j);
  return count;
}

template <class T, class U, std::size_t N, class From, class To>
void move_at_random(std::mt19937_64& g) {
  const auto group = all_ranks();
  const store st = common_store();
  const std::uint64_t budget = 256_KiB + (between(g, 0, 1) ? 1_MiB : 4_KiB * between(g, 0, 8));
  random_copy<T, U, N, From, To> m(g);
  m.source.group = m.target.group = group;
  m.source.replace = m.target.replace = true;
  m.source.owner_computes = between(g, 0, 1);
  CAPTURE(m.described(budget));
  runtime rt(memory(st.core()->staging_bytes() + budget));
  ooc_array<T, N, From> a{rt, st, "passes/from", create, m.from, m.source};
  ooc_array<U, N, To> b{rt, st, "passes/to", create, m.to, m.target};
  fill(a, m.source_salt);
  fill(b, m.target_salt);
  m.run(a, b);  // which brings the ranks' writes together
  a.sync();
  b.sync();
  REQUIRE(m.wrong(a, b) == 0);
  group->barrier("all have compared");
}

}  // namespace

TEST_CASE("ranks copy and transpose boxes and arrays of any types, orders and layouts as one process does") {
  std::mt19937_64 g = common_source(52);
  for (int n = rounds(2, 10); n > 0; --n) {
    move_at_random<double, float, 1, layout_right, layout_tiled>(g);
    move_at_random<std::int32_t, double, 2, layout_right, layout_tiled>(g);
    move_at_random<triple, triple, 2, layout_tiled, layout_right>(g);
    move_at_random<double, double, 3, layout_right, layout_right>(g);
    move_at_random<std::uint64_t, std::uint8_t, 3, layout_tiled, layout_right>(g);
  }
}

TEST_CASE("ranks pass over lines, planes and bodies of mixed types as one process does") {
  std::mt19937_64 g = common_source(53);
  for (int n = rounds(2, 10); n > 0; --n) {
    pass_at_random<1, layout_right, layout_right, layout_right>(g, common_store(), "passes/", 70000, all_ranks());
    pass_at_random<2, layout_tiled, layout_right, layout_tiled>(g, common_store(), "passes/", 70000, all_ranks());
    pass_at_random<3, layout_right, layout_right, layout_right>(g, common_store(), "passes/", 70000, all_ranks());
  }
}

TEST_CASE("a reproducible scan of rounded sums is that of one process to the last bit, in place too") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(54);
  const store st = common_store();
  for (int n = rounds(4, 20); n > 0; --n) {
    // Parts of ranks begin and end within pieces of 2^15 elements, and a piece may have several.
    const std::size_t size = between(g, 1, between(g, 0, 1) ? 20'000 : 300'000);
    const pass_options options{
        .threads = static_cast<unsigned>(between(g, 1, 8)), .mark = between(g, 0, 1) == 1, .reproducible = true};
    const bool in_place = between(g, 0, 1), checks = between(g, 0, 1), exclusive = between(g, 0, 1);
    CAPTURE(size, options.threads, options.mark, in_place, checks, exclusive);
    const auto scan = [&](const auto& from, auto& to, const pass_options& how) {
      if (exclusive)
        ooc::exclusive_scan(from, to, 0.3, std::plus<>(), how);
      else
        ooc::inclusive_scan(from, to, std::plus<>(), how);
    };
    runtime rt(memory(st.core()->staging_bytes() + 2_MiB));
    std::vector<double> alone(size);
    {
      const std::string name = "passes/mine" + std::to_string(group->rank());
      ooc_array<double, 1> mine{rt, st, name, create, {size}, {.replace = true}};
      for (std::size_t e = 0; e < size; ++e) mine[e] = start_value(e);
      scan(mine, mine, {.mark = false});
      std::copy(mine.begin(), mine.end(), alone.begin());
    }
    array_options<double> o{.block = 4_KiB * between(g, 1, 3), .replace = true, .group = group};
    if (checks) o.checking = check_conflicts;
    ooc_array<double, 1> a{rt, st, "passes/a", create, {size}, o};
    ooc_array<double, 1> b{rt, st, "passes/b", create, {size}, o};
    const auto [first, last] = a.local_rows();
    for (std::size_t e = first; e < last; ++e) a[e] = start_value(e);
    ooc_array<double, 1>& result = in_place ? a : b;
    scan(a, result, options);
    result.sync();
    std::size_t wrong = 0;
    for (std::size_t e = 0; e < size; ++e)
      wrong += std::memcmp(&std::as_const(result).data()[e], &alone[e], sizeof(double)) != 0;
    REQUIRE(wrong == 0);
    group->barrier("all have compared");
  }
}

TEST_CASE("a reproducible scan reads of other ranks what they have of a piece, however long rows are") {
  const auto group = all_ranks();
  const store st = common_store();
  constexpr std::size_t row = (1 << 18) + 100;  // 2 MiB
  const std::size_t rows = static_cast<std::size_t>(group->size()) * 2;
  runtime rt(memory(st.core()->staging_bytes() + 16_MiB, 1));
  array_options<double> o{.block = 64_KiB, .replace = true, .group = group};
  o.owner_computes = true;  // else the target is read, too
  ooc_array<double, 2> a{rt, st, "passes/a", create, {rows, row}, o}, b{rt, st, "passes/b", create, {rows, row}, o};
  ooc::fill(a, 1.0);
  a.invalidate();
  group->barrier("all have invalidated");
  const auto [first, last] = a.local_rows();
  const std::size_t cut = first * row % detail::elements_of_piece;
  const std::uint64_t before = rt.stats().bytes_read;
  ooc::inclusive_scan(a, b, std::plus<>(), {.threads = 1, .reproducible = true});
  // Its own rows, the beginning of the first piece, and the blocks where both begin and end.
  CHECK(rt.stats().bytes_read - before <= ((last - first) * row + cut) * sizeof(double) + 4 * 64_KiB);
  CHECK(std::as_const(b)[first][0] == static_cast<double>(first * row + 1));
  group->barrier("all have compared");
}

TEST_CASE("ranks copy, transpose, transform and reduce as one process does") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(51);
  const store st = common_store();
  for (int n = rounds(6, 30); n > 0; --n) {
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
    options.threads = static_cast<unsigned>(between(g, 1, 8));
    options.mark = between(g, 0, 1);
    options.reproducible = true;
    CAPTURE(rows, cols, tiled, o.owner_computes, options.threads, options.mark);
    runtime rt(memory(st.core()->staging_bytes() + 1_MiB));
    ooc_array<double, 2> a{rt, st, "passes/a", create, {rows, cols}, o};
    ooc_array<double, 2> same{rt, st, "passes/same", create, {rows, cols}, o};
    ooc_array<double, 2, layout_tiled> turned{rt,     st,           "passes/turned",
                                              create, {cols, rows}, {.tile = {8, 16}, .replace = true, .group = group}};
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
    REQUIRE(wrong(std::as_const(square), [&](auto i, auto j) { return start_value(j * rows + i); }) == 0);

    const double sum = reduce(a, 0.0, std::plus<>(), options).value;
    // Of the sum that one process computes: the fold has the same shape.
    double alone = 0;
    {
      std::vector<double> all(rows * cols);
      for (std::size_t e = 0; e < all.size(); ++e) all[e] = start_value(e);
      ooc_array<double, 1> mine{rt,     st,           "passes/mine" + std::to_string(group->rank()),
                                create, {all.size()}, {.replace = true}};
      std::copy(all.begin(), all.end(), mine.begin());
      alone = reduce(mine, 0.0);
    }
    CHECK(sum == alone);

    transform(
        a, same, [](double x) { return 2 * x; }, options);
    same.sync();
    REQUIRE(wrong(std::as_const(same), [&](auto i, auto j) { return 2 * at(i, j); }) == 0);
    // Sums of integers are exact, whatever their order.
    for_each(
        same, [](double& x) { x = std::floor(x * 50); }, options);
    ooc::inclusive_scan(same, same, std::plus<>(), options);
    same.sync();
    double scanned = 0;
    REQUIRE(wrong(std::as_const(same), [&](auto i, auto j) { return scanned += std::floor(2 * at(i, j) * 50); }) == 0);
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

TEST_CASE("ranks plan together what they then do, and one alone does not plan") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 2_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, st, "passes/planned", create, {210, 90}, o};
  ooc_array<double, 2> b{rt, st, "passes/planned too", create, {90, 210}, o};
  fill_own(a);
  a.sync();
  const auto alike = [](const pass_statistics& x, const pass_statistics& y) {
    CHECK(x.passes == y.passes);
    CHECK(x.memory == y.memory);
    CHECK(x.bytes_read == y.bytes_read);
    CHECK(x.bytes_written == y.bytes_written);
  };
  alike(transpose(a, b, pass_options{.plan = true}), transpose(a, b));
  for (const bool reproducible : {false, true}) {
    const pass_options plan{.reproducible = reproducible, .plan = true}, run{.reproducible = reproducible};
    alike(ooc::inclusive_scan(a, a, std::plus<>{}, plan), ooc::inclusive_scan(a, a, std::plus<>{}, run));
    alike(ooc::reduce(a, 0.0, std::plus<>{}, plan), ooc::reduce(a, 0.0, std::plus<>{}, run));
  }
  if (group->size() > 1)
    CHECK_THROWS_WITH(transpose(a, b, pass_options{.plan = group->rank() == 0}), Catch::Contains("plan of the"));
  group->barrier("all have planned");
}

TEST_CASE("ranks multiply a sparse matrix and vectors as one process does") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 2_MiB));
  constexpr std::size_t width = 50, vectors = 2;
  for (const std::size_t row_count : {1, 3, 300}) {
    std::vector<int> begins{0};
    for (std::size_t i = 0; i < row_count; ++i)
      begins.push_back(begins.back() + static_cast<int>(i % 3 == 1 ? 0 : row_count == 300 ? 7 * i : 100'000));
    const std::size_t n = static_cast<std::size_t>(begins.back());
    const auto value = [](std::size_t k) { return static_cast<double>(k % 9) - 4; };
    const auto column = [](std::size_t k) { return static_cast<int>(k * 13 % width); };
    const auto array = [&]<class T>(const char* name, std::size_t length, T, const auto& element) {
      ooc_array<T, 1> a{rt, st, name, create, {length}, {.block = 4_KiB, .replace = true, .group = group}};
      const auto [first, last] = a.local_rows();
      for (std::size_t k = first; k < last; ++k) a[k] = element(k);
      a.sync();
      return a;
    };
    const auto values = array("passes/values", n, double{}, value);
    const auto columns = array("passes/columns", n, int{}, column);
    const auto rows = array("passes/rows", begins.size(), int{}, [&](std::size_t i) { return begins[i]; });
    std::vector<double> x(width * vectors), y(row_count * vectors, 7), expected(y.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
    for (std::size_t i = 0; i < row_count; ++i)
      for (auto k = static_cast<std::size_t>(begins[i]); k < static_cast<std::size_t>(begins[i + 1]); ++k)
        for (std::size_t v = 0; v < vectors; ++v)
          expected[i * vectors + v] += value(k) * x[static_cast<std::size_t>(column(k)) * vectors + v];
    CAPTURE(row_count, n);
    multiply(sparse_matrix{values, columns, rows}, x, y);
    CHECK(y == expected);
    group->barrier("all have multiplied");
  }
}

TEST_CASE("ranks pass on the vectors of a sparse product in parts, whatever their length") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 8_MiB));
  // Each rank has a little more of them than it passes on at a time.
  const auto ranks = static_cast<std::size_t>(group->size());
  const std::size_t n = ranks * (detail::passed_on_at_a_time(group->size()) / sizeof(double) + 1001);
  const array_options<int> o{.replace = true, .group = group};
  ooc_array<double, 1> values{rt, st, "passes/values", create, {n}, {.replace = true, .group = group}};
  ooc_array<int, 1> columns{rt, st, "passes/columns", create, {n}, o}, rows{rt, st, "passes/rows", create, {n + 1}, o};
  generate(values, [](std::size_t k) { return static_cast<double>(k % 1009); });
  generate(columns, [](std::size_t k) { return static_cast<int>(k % 3); });
  generate(rows, [](std::size_t i) { return static_cast<int>(i); });
  const std::vector<double> x{1, 10, 100};
  std::vector<double> y(n, 7);
  multiply(sparse_matrix{values, columns, rows}, x, y);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += y[i] != static_cast<double>(i % 1009) * x[i % 3];
  CHECK(wrong == 0);
  group->barrier("all have multiplied");
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
  CHECK_THROWS_WITH(
      for_each(a, [&](double& x) { last ? throw std::runtime_error("too hot") : void(x = 1); }, {.mark = false}),
      Catch::Contains("too hot"));
}

TEST_CASE("ranks reduce and scan truth values as one process does") {
  const auto group = all_ranks();
  runtime rt(memory(common_store().core()->staging_bytes() + 2_MiB));
  constexpr std::size_t n = 300'000, at = 200'000;
  ooc_array<double, 1> a{
      rt, common_store(), "passes/a", create, {n}, {.block = 4_KiB, .replace = true, .group = group}};
  ooc_array<bool, 1> b{rt, common_store(), "passes/b", create, {n}, {.block = 4_KiB, .replace = true, .group = group}};
  generate(a, [](std::size_t i) { return i == at ? 1.0 : 0.0; });
  const auto warm = [](double x) { return x > 0; };
  for (const bool reproducible : {false, true}) {
    const pass_options options{.reproducible = reproducible};
    CHECK(transform_reduce(a, false, std::logical_or<>(), warm, options).value);
    CHECK_FALSE(transform_reduce(a, true, std::logical_and<>(), warm, options).value);
    ooc::inclusive_scan(a, b, std::logical_or<>(), options);
    b.sync();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += std::as_const(b)[i] != (i >= at);
    CHECK(wrong == 0);
    group->barrier("all have compared");
  }
}

TEST_CASE("what an operation throws on one rank where sums are put together comes out of the pass on all") {
  const auto group = all_ranks(std::chrono::seconds(10));
  if (group->size() == 1) return;
  const auto ranks = static_cast<std::size_t>(group->size());
  const bool last = group->rank() + 1 == group->size();
  runtime rt(memory(common_store().core()->staging_bytes() + 4_MiB));
  // All elements are 1, so as large as that are only sums of pieces or of ranks' parts.
  const auto added = [last](std::int64_t large) {
    return [last, large](std::int64_t x, std::int64_t y) {
      return last && y >= large ? throw std::runtime_error("the sum is too large") : x + y;
    };
  };
  const array_options<std::int64_t> o{.block = 4_KiB, .replace = true, .group = group};
  const auto text = Catch::Contains("rank " + std::to_string(ranks - 1) + ": the sum is too large");
  {
    constexpr std::size_t part = 2 * detail::elements_of_piece;
    ooc_array<std::int64_t, 1> a{rt, common_store(), "passes/sums", create, {ranks * part}, o};
    ooc_array<std::int64_t, 1> b{rt, common_store(), "passes/scan", create, {ranks * part}, o};
    ooc::fill(a, 1);
    const auto too_large = added(detail::elements_of_piece);
    CHECK_THROWS_WITH(ooc::reduce(a, std::int64_t{0}, too_large, {.mark = false}), text);
    CHECK_THROWS_WITH(ooc::inclusive_scan(a, b, too_large, {.mark = false}), text);
    CHECK_THROWS_WITH(ooc::inclusive_scan(a, b, too_large, {.mark = false, .reproducible = true}), text);
  }
  constexpr std::size_t part = 1024;  // one piece
  ooc_array<std::int64_t, 1> a{rt, common_store(), "passes/sums", create, {ranks * part}, o};
  ooc_array<std::int64_t, 1> b{rt, common_store(), "passes/scan", create, {ranks * part}, o};
  ooc::fill(a, 1);
  CHECK_THROWS_WITH(ooc::inclusive_scan(a, b, added(part), {.mark = false}), text);
  CHECK_THROWS_WITH(ooc::exclusive_scan(a, b, 0, added(part), {.mark = false}), text);
}

TEST_CASE("ranks transform a vector as one process does") {
  using complex = std::complex<double>;
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 500_KiB));
  for (const std::size_t n : {1, 60, 30'000, 65'536}) {
    const std::size_t at = 17 % n;
    ooc_array<double, 1> x{rt, st, "passes/x", create, {n}, {.block = 4_KiB, .replace = true, .group = group}};
    ooc_array<complex, 1> y{rt, st, "passes/y", create, {n}, {.block = 4_KiB, .replace = true, .group = group}};
    const auto [first, last] = x.local_rows();
    for (std::size_t k = first; k < last; ++k) x[k] = k == at ? 1 : 0;
    x.sync();
    CAPTURE(n);
    const pass_statistics planned = fft(x, y, {.plan = true}), done = fft(x, y);
    CHECK(done.passes == (n > 10'000 ? 2 : 1));
    CHECK(planned.bytes_read == done.bytes_read);
    CHECK(planned.bytes_written == done.bytes_written);
    double wrong = 0;
    for (std::size_t k = 0; k < n; ++k)
      wrong = std::max(wrong, std::abs(std::as_const(y)[k] - complex(detail::root_of_unity(-1, at * k % n, n))));
    CHECK(wrong < 1e-15);
    group->barrier("all have looked");
    ifft(y);
    wrong = 0;
    for (std::size_t k = 0; k < n; ++k) wrong = std::max(wrong, std::abs(std::as_const(y)[k] - (k == at ? 1.0 : 0.0)));
    CHECK(wrong < 1e-14);
    group->barrier("all have transformed");
  }
}
