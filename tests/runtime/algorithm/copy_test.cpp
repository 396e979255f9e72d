// Copies and transpositions: bit by bit the plain loop, in the budget, each element moved once.

#include "oocarray/algorithm/copy.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>

#include "support/algorithm/random_copy.hpp"
#include "support/dying_case.hpp"
#include "support/rounds.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <class T, class U, std::size_t N, class From, class To>
void move_at_random(std::mt19937_64& g, store_kind kind) {
  const test_store nodes(kind);
  const std::uint64_t budget = 128_KiB + (between(g, 0, 1) ? 1_MiB : 4_KiB * between(g, 0, 8));
  runtime rt(memory(nodes.staging() + budget));
  const random_copy<T, U, N, From, To> m(g);
  CAPTURE(m.described(budget));
  ooc_array<T, N, From> a{rt, nodes.handle(), "a", create, m.from, m.source};
  ooc_array<U, N, To> b{rt, nodes.handle(), "b", create, m.to, m.target};
  fill(a, m.source_salt);
  fill(b, m.target_salt);
  const auto done = m.run(a, b);
  CHECK(done.bytes_read == m.which.size() * sizeof(T));
  CHECK(done.bytes_written == m.which.size() * sizeof(U));
  REQUIRE(m.wrong(a, b) == 0);
}

}  // namespace

TEST_CASE("a copy or transposition is that of the plain loop, whatever shapes, orders and layouts") {
  std::mt19937_64 g(random_seed("copy and transpose"));
  for (int n = 0; n < rounds(8, 40); ++n) {
    move_at_random<double, double, 1, layout_right, layout_tiled>(g, store_kind::in_memory);
    move_at_random<double, double, 2, layout_right, layout_right>(g, store_kind::in_memory);
    move_at_random<std::int32_t, double, 2, layout_right, layout_tiled>(g, store_kind::in_memory);
    move_at_random<triple, triple, 2, layout_tiled, layout_right>(g, store_kind::in_memory);
    move_at_random<float, float, 3, layout_tiled, layout_tiled>(g, store_kind::in_memory);
    move_at_random<std::uint64_t, std::uint8_t, 4, layout_right, layout_right>(g, store_kind::in_memory);
  }
}

TEST_CASE("a copy or transposition in an embedded store is that of the plain loop") {
  std::mt19937_64 g(random_seed("copy and transpose, embedded"));
  for (int n = 0; n < rounds(2, 10); ++n) {
    move_at_random<double, double, 2, layout_right, layout_right>(g, store_kind::local);
    move_at_random<float, float, 3, layout_tiled, layout_tiled>(g, store_kind::local);
  }
}

TEST_CASE("a square matrix is transposed in place") {
  std::mt19937_64 g(random_seed("transposition in place"));
  for (int n = 0; n < rounds(20, 100); ++n) {
    const test_store nodes(store_kind::in_memory);
    runtime rt(memory(nodes.staging() + 160_KiB + 4_KiB * between(g, 0, 100)));
    const std::size_t side = between(g, 1, 120);
    const pass_options options{.threads = static_cast<unsigned>(between(g, 1, 8)), .memory = between(g, 0, 1) * 70_KiB};
    const auto check = [&](auto& a) {
      CAPTURE(side, options.threads, options.memory);
      fill(a, 1);
      const auto done = transpose(a, options);
      CHECK(done.bytes_read == side * side * sizeof(double));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < side; ++i)
        for (std::size_t j = 0; j < side; ++j) wrong += std::as_const(a)(i, j) != value_of<double>(j * side + i + 1);
      REQUIRE(wrong == 0);
    };
    if (between(g, 0, 1)) {
      const auto o = random_order<double, 2, layout_right>(g);
      ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {side, side}, o};
      check(a);
    } else {
      const auto o = random_order<double, 2, layout_tiled>(g);
      ooc_array<double, 2, layout_tiled> a{rt, nodes.handle(), "a", create, {side, side}, o};
      check(a);
    }
  }
}

TEST_CASE("a box of many megabytes is turned and written in parts, wherever they are cut", "[megabytes]") {
  std::mt19937_64 g(random_seed("boxes in parts"));
  for (int n = 0; n < rounds(3, 40); ++n) {
    const test_store nodes(store_kind::in_memory);
    runtime rt(memory(nodes.staging() + 160_MiB));
    constexpr std::size_t most = 5 << 20;
    coordinates<3> extents{};  // of what is copied, in the order of the target; some of them small
    std::size_t left = most;
    for (std::size_t k = 0; k < 3; ++k) {
      extents[k] = k == 2 ? left : between(g, 1, between(g, 0, 2) == 0 ? 9 : std::min<std::size_t>(left, 1100));
      left /= extents[k];
    }
    std::shuffle(extents.begin(), extents.end(), g);
    std::array<std::size_t, 3> permutation{0, 1, 2};
    std::shuffle(permutation.begin(), permutation.end(), g);
    coordinates<3> from{}, to{}, where{};
    box<3> which;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t j = permutation[k];
      which.lower[j] = between(g, 0, 1) * between(g, 0, 20);
      where[k] = extents[k] <= 1100 && between(g, 0, 1) ? extents[k] : between(g, 0, 1) * between(g, 0, 20);
      which.upper[j] = which.lower[j] + extents[k];
      from[j] = which.upper[j] + between(g, 0, 2);
      to[k] = where[k] + extents[k] + between(g, 0, 2);
      while (k == 2 && to[0] * to[1] * to[2] > 3 * most) where = {}, to = extents;
    }
    const auto order = [&](auto element, const coordinates<3>& e) {
      array_options<decltype(element)> o;
      if (between(g, 0, 1)) return o;
      o.order = file_order::tiled;
      for (std::size_t k = 0; k < 3; ++k) o.tile.push_back(between(g, 1, std::min<std::size_t>(e[k], 40)));
      return o;
    };
    const array_options<float> source = order(float{}, from);
    const array_options<double> target = order(double{}, to);
    const pass_options options{.threads = static_cast<unsigned>(between(g, 1, 4)), .mark = false};
    CAPTURE(describe<float>(from, source, 0), describe<double>(to, target, 0), permutation, which.lower, which.upper,
            where, options.threads);
    ooc_array<float, 3> a{rt, nodes.handle(), "a", create, from, source};
    ooc_array<double, 3> b{rt, nodes.handle(), "b", create, to, target};
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i);
    transpose(a, which, b, where, permutation, options);
    std::size_t wrong = 0;
    const double* const found = std::as_const(b).data();
    for_each_element<3>(b.whole(), to, [&](const coordinates<3>& c, std::size_t at) {
      coordinates<3> s{};
      bool copied = true;
      for (std::size_t k = 0; k < 3; ++k) {
        s[permutation[k]] = c[k] - where[k] + which.lower[permutation[k]];
        copied = copied && c[k] >= where[k] && c[k] - where[k] < extents[k];
      }
      wrong += found[at] != (copied ? static_cast<float>(linear_index<3>(s, from)) : 0);
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("columns are turned into rows one at a time where each is a part of a box by itself", "[megabytes]") {
  constexpr std::size_t rows = 3 << 19, columns = 3;
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 96_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {rows, columns}};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {columns, rows}};
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<double>(i);
  transpose(a, b);
  std::size_t wrong = 0;
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < rows; ++i) wrong += std::as_const(b)[j][i] != static_cast<double>(i * columns + j);
  CHECK(wrong == 0);
}

TEST_CASE("a box that begins in the middle of a tile has no more parts than others", "[megabytes]") {
  constexpr std::size_t rows = 1022, columns = 5200;  // a box: 1022 rows from 1022 on
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 160_MiB));
  ooc_array<float, 2> a{rt, nodes.handle(), "a", create, {columns, rows}};
  ooc_array<double, 2> b{rt,     nodes.handle(),      "b",
                         create, {2 * rows, columns}, {.order = file_order::tiled, .tile = {16, 16}}};
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i);
  transpose(a, a.whole(), b, {rows, 0});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) wrong += std::as_const(b)[rows + i][j] != std::as_const(a)[j][i];
  CHECK(wrong == 0);
}

TEST_CASE("boxes of many megabytes change places in parts", "[megabytes]") {
  constexpr std::size_t side = 2100;
  const bool tiled = GENERATE(false, true);
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 96_MiB));
  array_options<double> o;
  if (tiled) {
    o.order = file_order::tiled;
    o.tile = {16, 20};
  }
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {side, side}, o};
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<double>(i);
  transpose(a);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < side; ++i)
    for (std::size_t j = 0; j < side; ++j) wrong += std::as_const(a)[i][j] != static_cast<double>(j * side + i);
  CHECK(wrong == 0);
}

TEST_CASE("a box is transposed to where the program says, and nothing else of the target changes") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {30, 50}, {.block = 4_KiB}};
  ooc_array<float, 2> b{rt, nodes.handle(), "b", create, {40, 20}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < 30; ++i)
    for (std::size_t j = 0; j < 50; ++j) a[i][j] = static_cast<double>(100 * i + j);
  for (float& x : b) x = -1;
  transpose(a, {{3, 10}, {13, 40}}, b, {5, 7});  // 10 by 30 become 30 by 10
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 20; ++j) {
      const bool inside = i >= 5 && i < 35 && j >= 7 && j < 17;
      REQUIRE(b[i][j] == (inside ? static_cast<float>(100 * (j - 7 + 3) + i - 5 + 10) : -1));
    }
}

TEST_CASE("a transposition reads and writes each element once, in runs that memory allows", "[megabytes]") {
  const test_store nodes(store_kind::in_memory);
  constexpr std::size_t n = 1024;                  // 8 MiB in 2 MiB
  runtime rt(memory(nodes.staging() + 2_MiB, 1));  // without read-ahead, bytes are exact
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 32_KiB}};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {n, n}, {.block = 32_KiB}};
  for (std::size_t e = 0; e < n * n; ++e) a.data()[e] = static_cast<double>(e);
  a.writeback();
  const io_stats before = nodes.handle().stats();
  const runtime_stats faults = rt.stats();
  const auto done = transpose(a, b);
  const io_stats moved = nodes.handle().stats() - before;
  CHECK(done.passes == 1);
  CHECK(done.bytes_read == n * n * sizeof(double));
  CHECK(done.bytes_written == n * n * sizeof(double));
  CHECK(done.memory <= 2_MiB);
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  CHECK(rt.stats().faults == faults.faults);
  CHECK(rt.stats().bytes_read - faults.bytes_read >= done.bytes_read);
  CHECK(rt.stats().bytes_written - faults.bytes_written >= done.bytes_written);
  CHECK(std::as_const(b)[17][900] == 900.0 * n + 17);
}

TEST_CASE("what does not fit together is refused by name, and nothing is changed") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  const array_options<double> o{.block = 4_KiB};
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {50, 40}, o};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {50, 40}, o};
  b[3][3] = 5;
  using Catch::Contains;
  CHECK_THROWS_WITH(transpose(a, b),
                    Contains("transposition of 'a' to 'b'") && Contains("has the extents {50, 40} and needs {40, 50}"));
  CHECK_THROWS_WITH(transpose(a, b, {1, 1}), Contains("{1, 1} is no permutation"));
  CHECK_THROWS_WITH(transpose(a, b, {0, 2}), Contains("{0, 2} is no permutation"));
  CHECK_THROWS_WITH(transpose(a), Contains("only a square matrix") && Contains("{50, 40}"));
  CHECK_THROWS_WITH(copy(a, a), Contains("cannot be copied or transposed to itself"));
  CHECK_THROWS_WITH(copy(a, {{0, 0}, {10, 41}}, b, {0, 0}), Contains("does not lie within"));
  CHECK_THROWS_WITH(copy(a, {{5, 5}, {3, 9}}, b, {0, 0}), Contains("box of array 'a' is in dimension 0 from 5 to 3"));
  CHECK_THROWS_AS(transpose(a, {{5, 9}, {7, 5}}, b, {0, 0}), usage_error);
  CHECK_THROWS_WITH(copy(a, {{0, 0}, {10, 10}}, b, {41, 0}), Contains("does not lie within"));
  CHECK_THROWS_WITH(transpose(a, {{0, 0}, {10, 20}}, b, {31, 0}),
                    Contains("a box of {20, 10} elements does not lie within"));
  CHECK_THROWS_WITH(transpose(a, {{0, 0}, {10, 20}}, b, {0, 0}, {0, 2}), Contains("{0, 2} is no permutation"));
  CHECK_THROWS_WITH(transpose(a, {{0, 0}, {10, 10}}, a, {20, 20}),
                    Contains("cannot be copied or transposed to itself"));
  CHECK_THROWS_WITH(copy(a, b, {.memory = 4_KiB}), Contains("pass_options::memory is 4096"));
  {
    const auto pinned = b.pin(b.whole());
    CHECK_THROWS_WITH(copy(a, b), Contains("pinned regions"));
  }
  CHECK(b[3][3] == 5);
  a.close();
  CHECK_THROWS_WITH(copy(a, b), Contains("'a' has been closed"));
}

TEST_CASE("a budget that cannot hold any box is refused, naming what would do") {
  const test_store nodes(store_kind::in_memory);
  std::uint64_t more = 0;
  const array_options<double> o{.block = 4_KiB};
  const std::uint64_t least = nodes.staging() + 40_KiB;
  {
    runtime rt(memory(least));
    ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {64, 64}, o};
    ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {64, 64}, o};
    try {
      transpose(a, b);
      FAIL("a transposition in no memory");
    } catch (const usage_error& e) {
      CHECK(e.code() == errc::budget_too_small);
      const std::string what = e.what(), give = "give the runtime ";
      CAPTURE(what);
      REQUIRE(what.find(give) != std::string::npos);
      more = std::stoull(what.substr(what.find(give) + give.size()));
    }
  }
  runtime rt(memory((least + more + 4095) / 4096 * 4096));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", open, o};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", open, o};
  CHECK_NOTHROW(transpose(a, b));
}

TEST_CASE("the callback sees the progress of a copy and cancels it, and the file says so") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 1_MiB));
  using array = ooc_array<double, 2>;
  const array_options<double> o{.block = 4_KiB};
  array a{rt, nodes.handle(), "a", create, {600, 512}, o};
  {
    array b{rt, nodes.handle(), "b", create, {600, 512}, o};
    std::vector<std::uint64_t> told;
    const pass_options all{.memory = 256_KiB, .progress = [&](const pass_progress& p) {
                             told.push_back(p.done);
                             CHECK(p.all == 2 * a.size() * sizeof(double));
                             return true;
                           }};
    copy(a, b, all);
    REQUIRE(told.size() > 5);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.back() == 2 * a.size() * sizeof(double));
    const pass_options half{.memory = 256_KiB, .progress = [](const pass_progress& p) { return p.part() < 0.5; }};
    try {
      transpose(a, b, {0, 1}, half);
      FAIL("it was cancelled");
    } catch (const error& e) {
      CHECK(e.code() == std::errc::operation_canceled);
      CHECK_THAT(e.what(), Catch::Contains("transposition of 'a' to 'b'"));
    }
    CHECK(b[0][0] == 0);  // and it can be used
  }
  CHECK_THROWS_WITH((array{rt, nodes.handle(), "b", open}),
                    Catch::Contains("in the middle") && Catch::Contains("transposition of 'a' to 'b'"));
}

// The next test runs this in a process of its own.
TEST_CASE("a transposition in place that dies", "[.dies]") {
  const store s = store::open(url_of_dying_case(), {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 1_MiB));
  ooc_array<double, 2> a{rt, s, "a", create, {512, 512}, {.block = 32_KiB}};
  transpose(a, {.memory = 256_KiB, .progress = [](const pass_progress& p) {
                  if (p.part() > 0.3) ::raise(SIGKILL);
                  return true;
                }});
}

TEST_CASE("a process that dies in a transposition in place leaves a mark, which opening names", "[own-store]") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "store").string();
  run_dying_case("[.dies]", path);
  const store s = store::open("local:" + path, {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 1_MiB));
  using array = ooc_array<double, 2>;
  CHECK_THROWS_WITH((array{rt, s, "a", open}), Catch::Contains("in the middle") &&
                                                   Catch::Contains("transposition of 'a' in place, by test_passes["));
  {
    array a{rt, s, "a", open, {.block = 32_KiB, .unfinished = open_unfinished}};
    array b{rt, s, "b", create, {512, 512}, {.block = 32_KiB}};
    copy(b, a);
  }
  CHECK_NOTHROW(array{rt, s, "a", open});
}
