// Assignments to rows, boxes and tiles: where there is no name they copy elements, where there is one they rename.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/algorithm/sweep.hpp"
#include "support/random_source.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class T, std::size_t N, class Layout = layout_right>
using row_of = decltype(std::declval<ooc_array<T, N, Layout>&>()[0]);
template <class T, std::size_t N, class Layout = layout_right>
using row_of_const = decltype(std::declval<const ooc_array<T, N, Layout>&>()[0]);

/// Nothing that the loops copy about has grown, or has to be called to be copied.
template <class View>
constexpr bool is_plain = std::is_trivially_copyable_v<View>&& std::is_trivially_destructible_v<View>;
static_assert(is_plain<row_of<double, 3>> && is_plain<row_of<double, 2, layout_tiled>> && is_plain<tile<double, 2>>);
static_assert(is_plain<slab_view<double, 2>> && is_plain<slab_to_compute<3, double>>);
static_assert(sizeof(row_of<double, 2>) == 3 * sizeof(void*) && sizeof(slab_view<double, 2>) == 2 * sizeof(void*));

/// A named one becomes another one of its type, and nothing else.
static_assert(std::is_assignable_v<row_of<double, 3>&, row_of<double, 3>>);
static_assert(!std::is_assignable_v<row_of<double, 3>&, row_of_const<double, 3>>);
static_assert(std::is_assignable_v<tile<double, 2>&, tile<double, 2>>);
static_assert(std::is_assignable_v<slab_view<double, 1>&, slab_view<double, 1>>);

/// One without a name is given elements, of the same type and as many dimensions.
static_assert(std::is_assignable_v<row_of<double, 3>, row_of_const<double, 3>>);
static_assert(std::is_assignable_v<row_of<double, 3>, row_of<double, 3, layout_tiled>>);
static_assert(std::is_assignable_v<row_of<double, 3, layout_tiled>, tile<const double, 2>>);
static_assert(std::is_assignable_v<tile<double, 2>, row_of_const<double, 3>>);
static_assert(!std::is_assignable_v<row_of<double, 3>, row_of<double, 4>>);
static_assert(!std::is_assignable_v<row_of<double, 3>, row_of<float, 3>>);
static_assert(!std::is_assignable_v<row_of<double, 3>, double> && !std::is_assignable_v<row_of<double, 2>, double>);
static_assert(!std::is_assignable_v<row_of_const<double, 3>, row_of<double, 3>>);
static_assert(!std::is_assignable_v<row_of_const<double, 3>, row_of_const<double, 3>>);
static_assert(!std::is_assignable_v<tile<const double, 2>, tile<double, 2>>);
static_assert(!std::is_assignable_v<tile<double, 2>, double>);

/// What can be taken for one piece of memory: not the rows of a box, which has other elements in between.
template <class View>
concept one_piece = requires(const View& v) {
  v.data();
  v.begin();
  std::span<double>(v);
};
template <class View>
concept as_a_pointer = requires(const View& v) {
  v.data();
}
|| requires(const View& v) { v.begin(); }
|| std::is_convertible_v<View, std::span<double>>;
template <std::size_t N>
using rows_of_box = decltype(as_rows(std::declval<const tile<double, N>&>()));
static_assert(one_piece<row_of<double, 3>> && one_piece<rows_of_box<1>> &&
              one_piece<decltype(std::declval<rows_of_box<2>>()[0])>);
static_assert(!as_a_pointer<rows_of_box<2>> && !as_a_pointer<rows_of_box<3>> &&
              !as_a_pointer<row_of<double, 3, layout_tiled>>);

/// Nothing is assigned to an array that does not know its extents, or where it only looks as if it copied.
static_assert(!std::is_assignable_v<slab_view<double, 1>, slab_view<double, 1>>);
static_assert(!std::is_assignable_v<slab_view<double, 2>, slab_view<const double, 2>>);
static_assert(!std::is_assignable_v<slab_to_compute<3, double>&, slab_to_compute<3, double>>);
static_assert(!std::is_assignable_v<decltype(std::declval<slab_view<double, 1>>().span(0, 1)), std::span<double>>);
static_assert(!std::is_assignable_v<decltype(std::declval<slab_to_compute<2, double>>().span()), std::span<double>>);
static_assert(!std::is_assignable_v<decltype(std::declval<ooc_array<double, 2>&>().span()), std::span<double>>);
static_assert(!std::is_assignable_v<decltype(std::declval<pin_guard<double>&>().span()), std::span<double>>);
static_assert(!std::is_assignable_v<decltype(std::declval<pin_guard<double>&>().rows()[0]), std::span<double>>);

template <class Array>
void number(Array& a, double first) {
  std::iota(a.begin(), a.end(), first);
}

}  // namespace

TEST_CASE("a row, a plane and a box that are assigned to get the elements of the other side") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 3> a{rt, nodes.handle(), "a", create, {4, 5, 6}}, b{rt, nodes.handle(), "b", create, {4, 5, 6}};
  number(b, 1000);
  const ooc_array<double, 3>& read_only = b;
  a[1] = b[2];
  a[2][3] = read_only[0][4];
  a.slice({{3, 0, 0}, {4, 2, 2}}) = read_only.slice({{0, 3, 4}, {1, 5, 6}});
  std::size_t given = 0;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 5; ++j)
      for (std::size_t k = 0; k < 6; ++k) {
        const double expected = i == 1                     ? b(2, j, k)
                                : i == 2 && j == 3         ? b(0, 4, k)
                                : i == 3 && j < 2 && k < 2 ? b(0, j + 3, k + 4)
                                                           : 0;
        CHECK(a(i, j, k) == expected);
        given += a(i, j, k) != 0;
      }
  CHECK(given == 30 + 6 + 4);
  a[0] = a[3] = b[1];
  CHECK(std::ranges::equal(a[0], b[1]));
  CHECK(std::ranges::equal(a[3], b[1]));
}

TEST_CASE("rows and boxes of arrays of different layouts and ranks are assigned to each other") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 64));
  const array_options<double> small{.block = 4_KiB};
  ooc_array<double, 3> volume{rt, nodes.handle(), "volume", create, {3, 70, 50}, small};
  ooc_array<double, 3, layout_tiled> tiled{rt, nodes.handle(), "tiled", create, {3, 70, 50}, small};
  ooc_array<double, 2> plane{rt, nodes.handle(), "plane", create, {70, 50}, small};
  number(volume, 1);
  tiled[2] = volume[1];
  plane.slice(plane.whole()) = tiled[2];
  CHECK(std::ranges::equal(plane, volume[1]));
  volume[0] = plane.slice(plane.whole());
  CHECK(std::ranges::equal(volume[0], volume[1]));
  tiled[0][69] = plane[3];
  for (std::size_t k = 0; k < 50; ++k) CHECK(tiled(0, 69, k) == plane(3, k));
  tiled[1] = tiled[2];
  for (std::size_t j = 0; j < 70; ++j)
    for (std::size_t k = 0; k < 50; ++k) CHECK(tiled(1, j, k) == volume(1, j, k));
}

TEST_CASE("a tile of one array is assigned to that of another") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 64));
  const array_options<double> small{.block = 4_KiB};
  ooc_array<double, 2, layout_tiled> a{rt, nodes.handle(), "a", create, {50, 40}, small},
      b{rt, nodes.handle(), "b", create, {50, 40}, small};
  number(b, 1);
  const auto to = a.tiles(access_mode::write);
  const auto from = std::as_const(b).tiles();
  for (std::size_t k = 0; k < to.size(); ++k) to[k] = from[k];
  CHECK(std::ranges::equal(a, b));
  ooc_array<double, 2> c{rt, nodes.handle(), "c", create, {50, 40}, small};
  number(c, -5000);
  for (auto t : a.tiles(access_mode::write)) t.assign(c.slice(t.box()));
  CHECK(std::ranges::equal(a, c));
}

TEST_CASE("rows of a box are indexed, and the elements between them stay") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {6, 8}};
  const auto rows = as_rows(a.slice({{1, 2}, {4, 5}}));
  for (std::size_t i = 0; i < rows.extent(0); ++i)
    for (double& v : rows[i]) v = 1;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 8; ++j) CHECK(a(i, j) == (i >= 1 && i < 4 && j >= 2 && j < 5 ? 1 : 0));
}

TEST_CASE("boxes of one array that overlap are assigned as by a buffer") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 3> a{rt, nodes.handle(), "a", create, {6, 7, 8}};
  auto g = random_source(11);
  const auto draw = [&](std::size_t lower, std::size_t upper) {
    return std::uniform_int_distribution<std::size_t>(lower, upper)(g);
  };
  for (int n = 0; n < 200; ++n) {
    OOC_INFO_SEED();
    number(a, 0);
    std::vector<double> plain(a.begin(), a.end());
    box<3> from, to;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t extent = draw(0, a.extent(k));
      from.lower[k] = draw(0, a.extent(k) - extent);
      to.lower[k] = draw(0, a.extent(k) - extent);
      from.upper[k] = from.lower[k] + extent;
      to.upper[k] = to.lower[k] + extent;
    }
    const auto number_of = [&](const box<3>& b, std::size_t i, std::size_t j, std::size_t k) {
      return ((b.lower[0] + i) * 7 + b.lower[1] + j) * 8 + b.lower[2] + k;
    };
    const std::vector<double> before = plain;
    for (std::size_t i = 0; i < from.extent(0); ++i)
      for (std::size_t j = 0; j < from.extent(1); ++j)
        for (std::size_t k = 0; k < from.extent(2); ++k)
          plain[number_of(to, i, j, k)] = before[number_of(from, i, j, k)];
    a.slice(to) = a.slice(from);
    REQUIRE(std::ranges::equal(a, plain));
  }
}

TEST_CASE("an assignment between different extents throws, names both, and changes nothing") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 3> a{rt, nodes.handle(), "a", create, {4, 5, 6}};
  ooc_array<double, 3> b{rt, nodes.handle(), "b", create, {4, 5, 7}, {.fill = 3.0}};
  CHECK_THROWS_AS(a[1] = b[1], usage_error);
  CHECK_THROWS_WITH(a[1] = b[1], Contains("5 x 6") && Contains("5 x 7"));
  CHECK_THROWS_WITH(a.slice({{0, 0, 0}, {2, 2, 2}}) = b.slice({{0, 0, 0}, {2, 2, 3}}), Contains("2 x 2 x 3"));
  CHECK_THROWS_WITH((a[0][0].assign(b[0][0])), Contains("of 7") && Contains("of 6"));
  CHECK(std::ranges::count(a, 0.0) == 4 * 5 * 6);
}

TEST_CASE("a view or a tile that has a name becomes another one, and assign() copies") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {4, 6}};
  number(a, 0);
  auto row = a[0];
  row = a[2];
  CHECK(&row[1] == &a(2, 1));
  CHECK(a(0, 1) == 1);
  row.assign(a[3]);
  CHECK(a(2, 1) == 3 * 6 + 1);
  auto box = a.slice({{0, 0}, {1, 2}});
  box = a.slice({{1, 2}, {2, 4}});
  CHECK(&box(0, 0) == &a(1, 2));
  CHECK(a(0, 0) == 0);
}

TEST_CASE("elements of other types than numbers are assigned as bytes") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(blocks(nodes, 32));
  ooc_array<triple, 2> a{rt, nodes.handle(), "a", create, {3, 40}};
  ooc_array<triple, 2, layout_tiled> b{rt, nodes.handle(), "b", create, {3, 40}};
  for (std::size_t j = 0; j < 40; ++j) b[1][j] = value_of<triple>(j);
  a[2] = b[1];
  for (std::size_t j = 0; j < 40; ++j) CHECK(a[2][j] == value_of<triple>(j));
}
