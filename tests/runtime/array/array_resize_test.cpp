// Growing and shrinking the first dimension, and fill values.

#include <catch2/catch.hpp>

#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class Layout>
void shrink_and_grow(const array_options<int>& options, store_kind kind) {
  const test_store nodes(kind);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<int, 2, Layout> a{rt, nodes.handle(), "a", create, {100, 70}, options};
  CHECK(a.max_extent() == 300);
  for (int& v : a) v = 5;
  int& stays = a(10, 10);
  a.resize(40);
  CHECK(a.extent(0) == 40);
  CHECK(a(39, 69) == 5);
  a.resize(300);
  CHECK(&a(10, 10) == &stays);
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j < 70; ++j) REQUIRE(std::as_const(a)(i, j) == (i < 40 ? 5 : -7));
  a(299, 69) = 9;
  a.close();
  ooc_array<int, 2, Layout> again{rt, nodes.handle(), "a", ooc::open};
  CHECK(again.extent(0) == 300);
  CHECK(again.max_extent() == 300);
  CHECK(again(299, 69) == 9);
  CHECK(again(40, 0) == -7);
}

}  // namespace

TEST_CASE("an array that shrinks and grows again has fill values, for every layout and order") {
  for (const store_kind kind : {store_kind::in_memory, store_kind::local})
    for (const file_order order : {file_order::row_major, file_order::tiled}) {
      const array_options<int> o{.order = order, .tile = {16, 32}, .fill = -7, .max_extent = 300};
      shrink_and_grow<layout_right>(o, kind);
      shrink_and_grow<layout_tiled>(o, kind);
    }
}

TEST_CASE("a new array is its fill value, whether its space is reserved or not") {
  for (const bool sparse : {false, true}) {
    const test_store nodes(store_kind::local);
    runtime rt(memory(nodes.staging() + 128_KiB));
    ooc_array<triple, 1> a{rt,     nodes.handle(),
                           "a",    create,
                           {5000}, {.block = 4_KiB, .fill = value_of<triple>(3), .sparse = sparse}};
    CHECK(std::count(a.begin(), a.end(), value_of<triple>(3)) == 5000);
    CHECK(a.dirty_blocks() == 0);
  }
}

TEST_CASE("resize keeps its limits and says them") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  ooc_array<int, 2> a{rt, nodes.handle(), "a", create, {10, 10}, {.max_extent = 20}};
  CHECK_THROWS_WITH(a.resize(21),
                    Contains("'a'") && Contains("1 to 20, not 21") && Contains("max_extent"));
  CHECK_THROWS_WITH(a.resize(0), Contains("1 to 20, not 0"));
  {
    const auto p = a.pin({{0, 0}, {1, 1}});
    CHECK_THROWS_WITH(a.resize(12), Contains("pinned"));
  }
  a.resize(20);
  CHECK_THROWS_AS((ooc_array<int, 2>{rt, nodes.handle(), "b", create, {10, 10}, {.max_extent = 5}}),
                  usage_error);
}

TEST_CASE("a resize that fails keeps the extents and every row that was to stay") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  ooc_array<int, 1> a{rt,     nodes.handle(), "a",
                      create, {5000},         {.block = 4_KiB, .max_extent = 20000}};
  for (std::size_t i = 0; i < 5000; ++i) a[i] = static_cast<int>(i);
  const auto check = [&](std::size_t n) {
    REQUIRE(a.size() == 5000);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(a[i] == static_cast<int>(i));
  };
  const auto node_fails = [&](bool fails) {
    if (fails)
      nodes.nodes[1]->fail(operation::resize, std::make_error_code(std::errc::no_space_on_device));
    else
      nodes.nodes[1]->heal();
  };
  node_fails(true);
  CHECK_THROWS_AS(a.resize(20000), io_error);
  check(5000);
  node_fails(false);
  a.resize(20000);
  CHECK(a[4999] == 4999);
  CHECK(a[5000] == 0);
  a.resize(5000);
  node_fails(true);
  CHECK_THROWS_AS(a.resize(1000), io_error);
  check(1000);
  node_fails(false);
  a.resize(1000);
  CHECK(a[999] == 999);
}
