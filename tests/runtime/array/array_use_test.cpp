// Tests of what programs do with arrays: loops, views, iterators, tiles, Eigen, algorithms, threads, pins.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <limits>
#include <numeric>
#include <ranges>
#include <thread>

#include "oocarray/any_array.hpp"
#include "oocarray/eigen.hpp"
#include "oocarray/file.hpp"
#include "support/random_source.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

TEST_CASE("a loop over an array eight times the budget gives what a plain loop gives") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  constexpr std::size_t n = 360;
  ooc_array<double, 2> a{rt, s, "plate/a", create, {n, n}, {.block = 8_KiB}};
  ooc_array<double, 2> b{rt, s, "plate/b", create, {n, n}, {.block = 8_KiB}};
  std::vector<double> plain(n * n), result(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) a[i][j] = plain[i * n + j] = static_cast<double>(i * 7 + j);
  for (std::size_t i = 1; i + 1 < n; ++i)
    for (std::size_t j = 1; j + 1 < n; ++j) {
      b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
      result[i * n + j] =
          0.25 * (plain[(i - 1) * n + j] + plain[(i + 1) * n + j] + plain[i * n + j - 1] + plain[i * n + j + 1]);
    }
  CHECK(std::equal(result.begin(), result.end(), b.begin()));
  b.writeback();
  CHECK(b.dirty_blocks() == 0);
  CHECK(rt.stats().evictions > 0);
}

TEST_CASE("a statement that touches more blocks than the pool holds works") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 33_KiB));  // eight blocks, all arrays together
  constexpr std::size_t n = 512;                 // a row is a block
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {16, n}, {.block = 4_KiB, .buffers = 4}};
  for (std::size_t i = 0; i < 16; ++i) a[i][7] = static_cast<double>(i);
  for (int again = 0; again < 3; ++again) {
    a[8][3] = a[0][7] + a[1][7] + a[2][7] + a[3][7] + a[4][7] + a[9][7];
    CHECK(a[8][3] == 19);
  }
  CHECK(a.buffers().buffers == 4);
}

TEST_CASE("a slice is a box of the array as a strided piece of memory, for Eigen too") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {300, 200}, {.block = 4_KiB}};
  std::iota(a.begin(), a.end(), 0.0);
  const auto s = a.slice({{100, 50}, {300, 60}});
  CHECK(s.extents() == coordinates<2>{200, 10});
  CHECK(s.strides() == coordinates<2>{200, 1});
  CHECK(&s(7, 3) == &a[107][53]);
  eigen_map(s).row(7).setConstant(-1);
  CHECK(a[107][59] == -1);
  CHECK(a[107][60] == 107 * 200 + 60);
  const ooc_array<double, 2>& read_only = a;
  const auto column = read_only.slice({{0, 199}, {300, 200}});
  CHECK(eigen_map(column).sum() == (199.0 + 299 * 200 + 199) * 150);
  CHECK(a.slice({{3, 200}, {3, 200}}).size() == 0);
  CHECK_THROWS_WITH(a.slice({{0, 0}, {300, 201}}),
                    Catch::Contains("'a'") && Catch::Contains("201") && Catch::Contains("200"));
  CHECK_THROWS_WITH(a.slice({{5, 0}, {4, 1}}), Catch::Contains("'a'"));
  a.close();
  CHECK_THROWS_WITH(a.slice({{0, 0}, {1, 1}}), Catch::Contains("closed"));
}

TEST_CASE("references stay valid while their blocks come and go") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 8));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {1 << 18}, {.block = 4_KiB}};
  int& first = a[0];
  int& last = a[(1 << 18) - 1];
  first = 1;
  last = 2;
  const std::uint64_t before = rt.stats().evictions;
  CHECK(std::accumulate(a.begin(), a.end(), 0) == 3);
  CHECK(rt.stats().evictions > before + 100);
  first += 10;
  last += 20;
  CHECK(a[0] == 11);
  CHECK(a[(1 << 18) - 1] == 22);
}

static_assert(std::random_access_iterator<tiled_iterator<int, 2>>);
static_assert(std::random_access_iterator<tiled_iterator<const int, 3>>);
static_assert(std::convertible_to<tiled_iterator<int, 2>, tiled_iterator<const int, 2>>);
static_assert(std::ranges::input_range<decltype(std::declval<const ooc_array<int, 2>&>().tiles())>);
static_assert(std::is_nothrow_move_constructible_v<ooc_array<int, 2>>);
static_assert(!std::is_copy_constructible_v<ooc_array<int, 2>>);

TEST_CASE("rows, parentheses, elements and iterators name the same elements, in every layout") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 40));
  const auto check = [&](auto& a) {
    int n = 0;
    for (std::size_t i = 0; i < a.extent(0); ++i)
      for (std::size_t j = 0; j < a.extent(1); ++j)
        for (std::size_t k = 0; k < a.extent(2); ++k) a(i, j, k) = n++;
    const auto& c = a;
    auto it = c.begin();
    for (std::size_t i = 0; i < a.extent(0); ++i)
      for (std::size_t j = 0; j < a.extent(1); ++j)
        for (std::size_t k = 0; k < a.extent(2); ++k, ++it) {
          const int* here = &c(i, j, k);
          REQUIRE(&c[i][j][k] == here);
          REQUIRE(&a[i][j][k] == here);
          REQUIRE(&c.at(i, j, k) == here);
          REQUIRE(&c.element({i, j, k}) == here);
          REQUIRE(&*it == here);
        }
    REQUIRE(it == c.end());
    CHECK(std::is_sorted(c.begin(), c.end()));
    CHECK(c.end() - c.begin() == static_cast<std::ptrdiff_t>(c.size()));
    CHECK(*(c.end() - 1) == n - 1);
    CHECK(c.begin()[17] == 17);
    CHECK(*std::lower_bound(c.begin(), c.end(), 333) == 333);
    auto back = c.end();
    for (int m = n; m-- > 0;) REQUIRE(*--back == m);
    CHECK(a[1].size() == a.extent(1) * a.extent(2));
    CHECK(a[1].extent(1) == a.extent(2));
  };
  ooc_array<int, 3> right{rt, nodes.handle(), "r", create, {7, 9, 11}};
  check(right);
  CHECK(right[2][3].end() - right[2][3].begin() == 11);
  CHECK(std::span<int>(right[2]).size() == 99);
  CHECK(right.data() == &right[0][0][0]);
  ooc_array<int, 3, layout_tiled> tiled{rt, nodes.handle(), "t", create, {7, 9, 11}, {.tile = {2, 8, 4}}};
  check(tiled);
  CHECK(tiled.tile_extents() == std::array<std::size_t, 3>{2, 8, 4});
  ooc_array<int, 3, layout_tiled> one{rt, nodes.handle(), "o", create, {7, 9, 11}};
  check(one);
}

TEST_CASE("an Eigen map of the whole array multiplies a vector") {
  const test_store nodes(store_kind::local);
  runtime rt(blocks(nodes, 32));
  constexpr std::size_t n = 300;
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB}};
  Eigen::MatrixXd plain = Eigen::MatrixXd::Random(n, n);
  const Eigen::VectorXd x = Eigen::VectorXd::Random(n);
  eigen_map(a) = plain;
  const auto& c = a;
  CHECK((eigen_map(c) * x - plain * x).norm() < 1e-9);
  CHECK((eigen_map(c).transpose() * x - plain.transpose() * x).norm() < 1e-9);
  CHECK(rt.stats().evictions > 100);
  ooc_array<double, 1> v{rt, nodes.handle(), "v", create, {n}};
  eigen_map(v) = x;
  CHECK((eigen_map(a) * eigen_map(std::as_const(v)) - plain * x).norm() < 1e-9);
}

TEST_CASE("std::sort sorts an array larger than the budget, in either layout") {
  OOC_INFO_SEED();
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 24));
  const auto check = [&](auto& a) {
    auto g = random_source(7);
    std::vector<std::uint32_t> plain(a.size());
    std::size_t n = 0;
    for (auto& v : a) v = plain[n++] = static_cast<std::uint32_t>(g());
    std::sort(a.begin(), a.end());
    std::sort(plain.begin(), plain.end());
    CHECK(std::equal(a.begin(), a.end(), plain.begin(), plain.end()));
  };
  ooc_array<std::uint32_t, 1> right{rt, nodes.handle(), "r", create, {70000}, {.block = 4_KiB}};
  check(right);
  ooc_array<std::uint32_t, 2, layout_tiled> tiled{rt, nodes.handle(), "t", create, {210, 190}, {.tile = {32, 32}}};
  check(tiled);
  CHECK(rt.stats().evictions > 0);
}

TEST_CASE("tiles visit every element once, in storage order, and know where they are") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 60));
  const auto check = [](auto& a) {
    int n = 0;
    for (auto& v : a) v = n++;
    std::vector<int> seen(a.size());
    const auto& c = a;
    const int* last = nullptr;
    for (const auto t : c.tiles()) {
      REQUIRE(t.data() > last);
      last = t.data();
      for (std::size_t i = 0; i < t.extent(0); ++i)
        for (std::size_t j = 0; j < t.extent(1); ++j) {
          const std::size_t at = (t.lower()[0] + i) * a.extent(1) + t.lower()[1] + j;
          REQUIRE(&t(i, j) == &c(t.lower()[0] + i, t.lower()[1] + j));
          REQUIRE(t(i, j) == static_cast<int>(at));
          ++seen[at];
        }
      const auto m = eigen_map(t);
      REQUIRE(m(m.rows() - 1, m.cols() - 1) == t(t.rows() - 1, t.cols() - 1));
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(a.size()));
    for (const auto t : a.tiles(access_mode::write)) eigen_map(t).array() += 5;
    CHECK(c(3, 4) == static_cast<int>(3 * a.extent(1) + 4 + 5));
    const auto all = c.tiles();
    CHECK(all[all.size() - 1].upper() == coordinates<2>{a.extent(0), a.extent(1)});
  };
  ooc_array<int, 2> right{rt, nodes.handle(), "r", create, {90, 100}, {.block = 4_KiB}};
  check(right);
  CHECK(right.tiles(access_mode::read).size() == 9);  // ten rows of 400 bytes fit into a block
  ooc_array<int, 2> wide{rt, nodes.handle(), "w", create, {5, 3000}, {.block = 4_KiB}};
  check(wide);
  ooc_array<int, 2, layout_tiled> tiled{rt, nodes.handle(), "t", create, {90, 100}, {.tile = {32, 16}}};
  check(tiled);
  CHECK(tiled.tiles(access_mode::read).size() == 3 * 7);
}

TEST_CASE("tiles may be fetched ahead as far as can be said") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 64));
  ooc_array<int, 2> a{rt, nodes.handle(), "a", create, {90, 100}, {.block = 4_KiB}};
  std::size_t elements = 0;
  for (const auto t : std::as_const(a).tiles(std::numeric_limits<std::size_t>::max())) elements += t.size();
  CHECK(elements == a.size());
}

TEST_CASE("a tile is named by its coordinates in the grid of tiles, for algorithms by blocks of a matrix") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 64));
  const array_options<double> o{.tile = {32, 32}, .block = 8_KiB};
  ooc_array<double, 2, layout_tiled> a{rt, nodes.handle(), "a", create, {70, 100}, o};
  std::iota(a.begin(), a.end(), 0.0);
  const auto tiles = a.tiles(access_mode::write);
  CHECK(tiles.grid() == coordinates<2>{3, 4});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      const auto t = tiles(i, j);
      CHECK(t.lower() == coordinates<2>{32 * i, 32 * j});
      CHECK(t.box() == tiles[4 * i + j].box());
      CHECK(t.data() == &a(32 * i, 32 * j));
    }
  CHECK(tiles(2, 3).extents() == coordinates<2>{6, 4});
  const double before = a(64, 33);
  eigen_map(tiles(2, 1)) -= eigen_map(tiles(2, 0)) * eigen_map(tiles(0, 1));
  CHECK(a(64, 33) != before);
  ooc_array<double, 2> rows{rt, nodes.handle(), "rows", create, {70, 100}, {.block = 8_KiB}};
  CHECK(std::as_const(rows).tiles()(1, 0).lower()[0] == 10);
}

TEST_CASE("pinned rows may be given to system calls") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 16));
  temporary_folder folder;
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {100, 100}, {.block = 4_KiB}};
  double n = 0;
  for (double& v : a) v = n++;
  a.writeback();
  a.invalidate();

  const int fd = ::open((folder / "rows").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  {
    const auto p = std::as_const(a).pin({{10, 20}, {14, 30}});
    CHECK(p.rows().size() == 4);
    CHECK(!p.contiguous());
    CHECK_THROWS_WITH(p.span(), Catch::Contains("4 runs"));
    for (const auto row : p.rows())
      REQUIRE(::write(fd, row.data(), row.size_bytes()) == static_cast<ssize_t>(row.size_bytes()));
    CHECK_THROWS_WITH(a.invalidate(), Catch::Contains("'a' has pinned regions"));
    CHECK_THROWS_WITH(a.close(), Catch::Contains("'a' has pinned regions"));
  }
  CHECK(a.dirty_blocks() == 0);  // reading does not modify
  {
    auto p = a.pin({{50, 0}, {51, 100}});
    REQUIRE(p.contiguous());
    REQUIRE(p.span().size() == 100);
    REQUIRE(::pread(fd, p.span().data(), 40 * sizeof(double), 0) == 40 * sizeof(double));
    auto moved = std::move(p);
    CHECK(p.rows().empty());
    CHECK(moved.span()[0] == 1020);
    moved.release();
  }
  ::close(fd);
  CHECK(a.dirty_blocks() > 0);
  a.writeback();
  a.invalidate();
  CHECK(a(50, 0) == 1020);
  CHECK(a(50, 39) == 1329);
  CHECK(a(50, 40) == 5040);
  CHECK_THROWS_WITH(a.pin(a.whole()), Catch::Contains("cannot pin") && Catch::Contains("budget"));
}

TEST_CASE("arrays move, and close when they go") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 40));
  {
    ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {1000}};
    a[5] = 55;
    int& five = a[5];
    ooc_array<int, 1> b = std::move(a);
    CHECK(b[5] == 55);
    CHECK(&b[5] == &five);
    CHECK_THROWS_WITH(a.writeback(), Catch::Contains("moved from"));
    ooc_array<int, 1> c{rt, nodes.handle(), "c", create, {10}};
    c = std::move(b);  // closes the file c
    CHECK(c.path() == "a");
    const ooc_array<int, 1> again{rt, nodes.handle(), "c", ooc::open};
    CHECK(again.size() == 10);
  }
  const ooc_array<int, 1> a{rt, nodes.handle(), "a", open_read_only};
  CHECK(a[5] == 55);
}

TEST_CASE("an array that was moved from has no elements, in each layout") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 40));
  const auto move_from = [&](auto a) {
    const auto b = std::move(a);
    CHECK(b.end() - b.begin() == 77);
    CHECK(a.begin() == a.end());
    CHECK(a.cbegin() == a.cend());
    for (const int v : a) FAIL("an element " << v);
  };
  move_from(ooc_array<int, 2>{rt, nodes.handle(), "r", create, {7, 11}});
  move_from(ooc_array<int, 2, layout_tiled>{rt, nodes.handle(), "t", create, {7, 11}});
  move_from(ooc_array<int, 1, layout_tiled>{rt, nodes.handle(), "v", create, {77}});
}

TEST_CASE("an array without a file is closed until it is assigned to") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 40));
  struct {
    ooc_array<double, 2> u;
    ooc_array<double, 2, layout_tiled> v;
    any_array w;
  } model;
  CHECK(!model.u.is_open());
  CHECK(model.u.extents() == coordinates<2>{0, 0});
  CHECK(model.u.size() == 0);
  CHECK_THROWS_WITH(model.u.writeback(), Catch::Contains("no file"));
  CHECK_THROWS_WITH(model.v.at(0, 0), Catch::Contains("no file") || Catch::Contains("extent"));
  CHECK_THROWS_WITH(model.w.rank(), Catch::Contains("no file"));
  model.u = ooc_array<double, 2>(rt, nodes.handle(), "u", create, {10, 10}, {.fill = 2.0});
  CHECK(model.u[9][9] == 2);
}

TEST_CASE("elements that are addresses are no elements of a file") {
  STATIC_REQUIRE(detail::holds_address<int*> && detail::holds_address<const char* const>);
  STATIC_REQUIRE(detail::holds_address<std::string_view> && detail::holds_address<std::span<double>>);
  STATIC_REQUIRE(detail::holds_address<std::array<void*, 3>> && detail::holds_address<int triple::*>);
  STATIC_REQUIRE(!detail::holds_address<double> && !detail::holds_address<triple>);
  STATIC_REQUIRE(!detail::holds_address<std::array<char, 8>>);
}

TEST_CASE(
    "columns of tiles of a row-major file come together, edges included, and hold what was "
    "written",
    "[nodes]") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  constexpr std::size_t rows = 70, columns = 204, side = 16;
  {
    runtime rt(blocks(nodes, 64));
    ooc_array<double, 2> a{rt, s, "plate", create, {rows, columns}};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) a[i][j] = value_of<double>(i * columns + j);
    a.close();
  }
  runtime rt(blocks(nodes, 60));
  const ooc_array<double, 2, layout_tiled> a{rt, s, "plate", open_read_only, {.tile = {side, side}}};
  const io_stats before = s.stats();
  const std::size_t high = (rows + side - 1) / side, wide = (columns + side - 1) / side;
  const auto tiles = a.tiles();
  std::size_t wrong = 0;
  for (std::size_t tj = 0; tj < wide; ++tj)
    for (std::size_t ti = 0; ti < high; ++ti) {
      const auto t = tiles[ti * wide + tj];
      for (std::size_t i = 0; i < t.rows(); ++i)
        for (std::size_t j = 0; j < t.cols(); ++j)
          wrong += t(i, j) != value_of<double>((ti * side + i) * columns + tj * side + j);
    }
  CHECK(wrong == 0);
  // Each tile lies on both nodes: by itself it takes two requests.
  CHECK((s.stats() - before).read_requests < 2 * high * wide * 3 / 4);
}

TEST_CASE("an array that is removed while somebody has it open is an error where it is read, never other elements") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  {
    ooc_array<double, 1> a(rt, s, "a", create, {100'000}, {.fill = 3.0, .sparse = true});
    for (std::size_t i = 0; i < 50'000; ++i) a[i] = 1;
    a.writeback();
  }
  const file f = file::open(s, "a");
  std::vector<double> some(1000);
  const auto read = [&](std::uint64_t first) {
    f.read(request::contiguous(8 * first, 8 * some.size()), std::as_writable_bytes(std::span(some)));
    return some.front();
  };
  CHECK(read(0) == 1);
  CHECK(read(90'000) == 3);
  s.remove("a");
  s.core()->removals().finish();
  CHECK_THROWS_AS(read(0), error);
  CHECK_THROWS_AS(read(90'000), error);
}
