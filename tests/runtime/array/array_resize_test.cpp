// Growing and shrinking, and fill values.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/any_array.hpp"
#include "support/random_boxes.hpp"
#include "support/random_source.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class Layout>
void shrink_and_grow(const array_options<int>& options, store_kind kind) {
  const test_store nodes(kind);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<int, 2, Layout> a{rt, nodes.handle(), "a", create, {100, 70}, tile_if_used<Layout>(options)};
  CHECK(a.max_extents()[0] == 300);
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
  CHECK(again.max_extents()[0] == 300);
  CHECK(again(299, 69) == 9);
  CHECK(again(40, 0) == -7);
}

}  // namespace

TEST_CASE("an array that shrinks and grows again has fill values, for every layout and order") {
  for (const store_kind kind : {store_kind::in_memory, store_kind::local})
    for (const file_order order : {file_order::row_major, file_order::tiled}) {
      const array_options<int> o{.order = order, .tile = {16, 32}, .fill = -7, .max_extents = {300}};
      shrink_and_grow<layout_right>(o, kind);
      shrink_and_grow<layout_tiled>(o, kind);
    }
}

TEST_CASE("a new array is its fill value, whether its space is reserved or not") {
  for (const bool sparse : {false, true}) {
    const test_store nodes(store_kind::local);
    runtime rt(memory(nodes.staging() + 128_KiB));
    ooc_array<triple, 1> a{rt,     nodes.handle(), "a",
                           create, {5000},         {.block = 4_KiB, .fill = value_of<triple>(3), .sparse = sparse}};
    CHECK(std::count(a.begin(), a.end(), value_of<triple>(3)) == 5000);
    CHECK(a.dirty_blocks() == 0);
  }
}

TEST_CASE("resize keeps its limits and says them") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  ooc_array<int, 2> a{rt, nodes.handle(), "a", create, {10, 10}, {.max_extents = {20}}};
  CHECK_THROWS_WITH(a.resize(21), Contains("'a'") && Contains("0 to 20, not 21") && Contains("max_extent"));
  {
    const auto p = a.pin({{0, 0}, {1, 1}});
    CHECK_THROWS_WITH(a.resize(12), Contains("pinned"));
  }
  a.resize(20);
  CHECK_THROWS_AS((ooc_array<int, 2>{rt, nodes.handle(), "b", create, {10, 10}, {.max_extents = {5}}}), usage_error);
}

TEST_CASE("a resize that fails keeps the extents and every row that was to stay") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {5000}, {.block = 4_KiB, .max_extents = {20000}}};
  for (std::size_t i = 0; i < 5000; ++i) a[i] = static_cast<int>(i);
  const auto check = [&](std::size_t n) {
    REQUIRE(a.size() == 5000);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(a[i] == static_cast<int>(i));
  };
  const auto node_fails = [&](bool fails) {
    if (fails)
      nodes.nodes[1]->fail(io_kind::resize, std::make_error_code(std::errc::no_space_on_device));
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

namespace {

using tiled_matrix = ooc_array<int, 2, layout_tiled>;

/// A tiled file that may grow in both dimensions.
array_options<int> in_both(std::vector<std::size_t> limits = {50, 90}) {
  return {.order = file_order::tiled, .tile = {8, 32}, .fill = -7, .max_extents = std::move(limits)};
}

int number(std::size_t i, std::size_t j) { return static_cast<int>(i * 1000 + j); }

template <class Array>
void write_numbers(Array& a) {
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) a(i, j) = number(i, j);
}

/// Elements that are not their numbers within rows x columns, or not fill beyond.
template <class Array>
std::size_t wrong(const Array& a, std::size_t rows, std::size_t columns) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) n += a(i, j) != (i < rows && j < columns ? number(i, j) : -7);
  return n;
}

}  // namespace

TEST_CASE("any extent of a tiled array grows and shrinks, and references stay") {
  for (const store_kind kind : {store_kind::in_memory, store_kind::local})
    for (const std::vector<std::size_t>& memory_tile : {std::vector<std::size_t>{8, 32}, {16, 64}, {32, 16}}) {
      const test_store nodes(kind);
      runtime rt(blocks(nodes, 8));
      tiled_matrix{rt, nodes.handle(), "a", create, {20, 30}, in_both()};
      tiled_matrix a{rt, nodes.handle(), "a", ooc::open, {.tile = memory_tile}};
      CHECK(a.max_extents() == std::vector<std::size_t>{50, 90});
      write_numbers(a);
      int& stays = a(9, 4);
      a.resize({20, 90});
      CHECK(a.extents() == tiled_matrix::extents_type{20, 90});
      CHECK(&a(9, 4) == &stays);
      CHECK(wrong(std::as_const(a), 20, 30) == 0);
      write_numbers(a);
      a.resize({50, 31});  // one grows, one shrinks
      CHECK(wrong(std::as_const(a), 20, 31) == 0);
      write_numbers(a);
      a.resize({10, 5});
      CHECK(wrong(std::as_const(a), 10, 5) == 0);
      a.resize({50, 90});
      CHECK(&a(9, 4) == &stays);
      CHECK(wrong(std::as_const(a), 10, 5) == 0);
      a.close();
      const ooc_array<int, 2> again{rt, nodes.handle(), "a", open_read_only};
      CHECK(again.extents() == tiled_matrix::extents_type{50, 90});
      CHECK(again.max_extents() == std::vector<std::size_t>{50, 90});
      CHECK(wrong(again, 10, 5) == 0);
    }
}

TEST_CASE("what was cut off by a program that is gone reads as fill when another one grows the array") {
  const test_store nodes(store_kind::local);
  runtime rt(blocks(nodes, 8));
  {
    tiled_matrix a{rt, nodes.handle(), "a", create, {50, 90}, in_both()};
    write_numbers(a);
    a.resize({50, 40});
  }
  {
    tiled_matrix a{rt, nodes.handle(), "a", ooc::open};
    a.resize({9, 33});
  }
  tiled_matrix a{rt, nodes.handle(), "a", ooc::open, {.tile = {4, 16}}};
  a.resize({40, 90});
  CHECK(wrong(std::as_const(a), 9, 33) == 0);
}

TEST_CASE("tiles, passes, copies and lists of indices see what lies within the extents") {
  const test_store nodes(store_kind::local);
  runtime rt(blocks(nodes, 40));
  tiled_matrix a{rt, nodes.handle(), "a", create, {3, 40}, in_both({1000, 1000})};
  a.resize({21, 70});
  std::size_t seen = 0, tiles = 0;
  for (const auto& t : a.tiles(access_mode::write)) {
    seen += t.size();
    ++tiles;
    CHECK(t.data() == &a.element(t.lower()));
    for (std::size_t i = 0; i < t.extent(0); ++i)
      for (std::size_t j = 0; j < t.extent(1); ++j) t(i, j) = number(t.lower()[0] + i, t.lower()[1] + j);
  }
  CHECK(seen == 21 * 70);
  CHECK(tiles == 3 * 3);
  CHECK(wrong(std::as_const(a), 21, 70) == 0);

  ooc_array<int, 2> rows{rt, nodes.handle(), "rows", create, {21, 70}};
  ooc::copy(a, rows);
  CHECK(wrong(std::as_const(rows), 21, 70) == 0);
  ooc::transform(rows, a, [](int v) { return v + 1; });
  CHECK(a(20, 69) == number(20, 69) + 1);
  const std::int64_t sum = ooc::reduce(a, std::int64_t{0});
  CHECK(sum == std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) + 21 * 70);

  const std::vector<std::size_t> where{20 * 70 + 69, 0, 70};
  std::vector<int> found(3);
  a.gather(where, found);
  CHECK(found == std::vector<int>{number(20, 69) + 1, 1, number(1, 0) + 1});
  any_array any{rt,
                nodes.handle(),
                "any",
                create,
                {"i4", 4},
                std::vector<std::size_t>{3, 40},
                {.order = file_order::tiled, .tile = {8, 32}, .max_extents = {50, 90}},
                any_array::memory_layout::tiled};
  any.resize(std::vector<std::size_t>{9, 70});
  CHECK(any.tiles() == 6);
  CHECK(any.tile_at(5).box.lower == std::vector<std::size_t>{8, 64});
  CHECK(any.tile_at(5).data - any.tile_at(0).data == 5 * 4096);
  CHECK(any.tile_at(3).box.lower == std::vector<std::size_t>{8, 0});
}

TEST_CASE("an array without a type changes any extent of its row-major image, where elements then move") {
  const test_store nodes(store_kind::local);
  runtime rt(blocks(nodes, 8));
  {
    tiled_matrix a{rt, nodes.handle(), "a", create, {20, 30}, in_both()};
    write_numbers(a);
  }
  {
    any_array a{rt, nodes.handle(), "a", ooc::open};
    reinterpret_cast<int*>(a.data())[31] = number(1, 1);
    a.resize(std::vector<std::size_t>{50, 90});
    CHECK(a.strides() == std::vector<std::size_t>{360, 4});
    CHECK(reinterpret_cast<int*>(a.data())[91] == number(1, 1));
    a.resize(std::vector<std::size_t>{50, 25});
    a.resize(std::vector<std::size_t>{50, 80});
  }
  const ooc_array<int, 2> a{rt, nodes.handle(), "a", open_read_only};
  CHECK(a.extents() == tiled_matrix::extents_type{50, 80});
  CHECK(wrong(a, 20, 25) == 0);
}

TEST_CASE("what an array may grow to takes no space") {
  const temporary_folder folder;
  const auto store = ooc::store::open("local:" + (folder / "node").string());
  runtime rt(memory(64_MiB));
#if defined(__SANITIZE_THREAD__)
  const std::size_t most = std::size_t{1} << 18;  // the sanitizer leaves a program little over 1 TiB of addresses
#else
  const std::size_t most = std::size_t{1} << 21;
#endif
  ooc_array<std::int64_t, 2, layout_tiled> a{
      rt, store, "a", create, {100, 100}, {.order = file_order::tiled, .tile = {64, 64}, .max_extents = {most, most}}};
  for (std::int64_t& v : a) v = 5;
  a.resize({300, 300});
  a(299, 299) = 7;
  a.writeback(durable);
  std::uint64_t bytes = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder.path())) {
    struct stat st {};
    REQUIRE(::stat(e.path().c_str(), &st) == 0);
    bytes += static_cast<std::uint64_t>(st.st_blocks) * 512;
  }
  CHECK(bytes < 8_MiB);
  CHECK(store.entry("a").size > 32_GiB / 512);
}

TEST_CASE("an extent that cannot change says which, why, and what to do") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  const auto store = nodes.handle();
  const auto make = [&](const array_options<int>& o) { return tiled_matrix(rt, store, "a", create, {20, 30}, o); };
  CHECK_THROWS_WITH(make({.max_extents = {50, 90}}), Contains("'a'") && Contains("dimension 1") &&
                                                         Contains("row-major") && Contains("file_order::tiled"));
  CHECK_THROWS_WITH(make({.order = file_order::tiled, .max_extents = {50, 29}}),
                    Contains("max_extents {50, 29}") && Contains("{20, 30}") && Contains("dimension 1"));
  CHECK_THROWS_WITH(make(in_both({50, 90, 7})), Contains("{50, 90, 7}") && Contains("dimensions: 2"));
  CHECK_THROWS_WITH(make(in_both({std::size_t{1} << 40, std::size_t{1} << 40})), Contains("2^63 - 1"));
  {
    tiled_matrix rows{rt, store, "rows", create, {20, 30}, {.max_extents = {50, 30}}};
    CHECK(rows.max_extents() == std::vector<std::size_t>{50, 30});
    CHECK_THROWS_WITH(rows.resize({20, 29}), Contains("'rows'") && Contains("dimension 1 stays 30") &&
                                                 Contains("row-major") && Contains("ooc::copy"));
    rows.resize(50);
  }
  {
    tiled_matrix tiles{rt, store, "tiles", create, {20, 30}, {.order = file_order::tiled, .max_extents = {50}}};
    CHECK_THROWS_WITH(tiles.resize({20, 31}), Contains("dimension 1 stays 30") && Contains("options.max_extents"));
    tiles.resize({50, 30});
  }
  {
    tiled_matrix both = make(in_both());
    CHECK_THROWS_WITH(both.resize({20, 91}), Contains("dimension 1 can be 1 to 90, not 91"));
    CHECK_THROWS_WITH(both.resize({51, 30}), Contains("dimension 0 can be 0 to 50, not 51"));
    CHECK(both.extents() == tiled_matrix::extents_type{20, 30});
  }
  ooc_array<int, 2> right{rt, store, "a", ooc::open};
  CHECK_THROWS_WITH(right.resize({20, 31}), Contains("dimension 1 stays 30") && Contains("layout_tiled"));
  right.resize({50, 30});
  CHECK(right.extent(0) == 50);
}

TEST_CASE("a resize of two extents that fails keeps the extents and every element that was to stay") {
  memory_store nodes(2);
  runtime rt(memory(512_KiB));
  tiled_matrix a{rt, nodes.handle(), "a", create, {20, 80}, in_both()};
  write_numbers(a);
  nodes.nodes[1]->fail(io_kind::resize, std::make_error_code(std::errc::no_space_on_device));
  CHECK_THROWS_AS(a.resize({50, 20}), io_error);
  nodes.nodes[1]->heal();
  CHECK(a.extents() == tiled_matrix::extents_type{20, 80});
  CHECK(wrong(std::as_const(a), 20, 80) == 0);
  a.resize({50, 20});
  a.resize({50, 90});
  CHECK(wrong(std::as_const(a), 20, 20) == 0);
}

TEMPLATE_TEST_CASE_SIG("random resizes of any extent, writes and openings in other tiles read what a plain array holds",
                       "", ((class T, std::size_t N), T, N), (std::int32_t, 2), (triple, 2), (double, 3)) {
  OOC_INFO_SEED();
  for (int round = 0; round < 6; ++round) {
    std::mt19937_64 g = random_source(4000 + 100 * N + static_cast<std::uint64_t>(round) + sizeof(T));
    INFO("round " << round);
    const test_store nodes(round % 3 == 0 ? store_kind::in_memory : store_kind::local);
    array_options<T> o{.order = file_order::tiled};
    if (between(g, 0, 1)) o.fill = value_of<T>(99);
    const T fill = o.fill.value_or(T{});
    const auto tile = [&] {
      std::vector<std::size_t> t;
      for (std::size_t k = 0; k < N; ++k) t.push_back(std::size_t{1} << between(g, N == 2 ? 2 : 1, N == 2 ? 4 : 3));
      t.back() *= 4;  // at most 24 KiB
      return t;
    };
    coordinates<N> extents{};
    for (std::size_t k = 0; k < N; ++k) {
      extents[k] = between(g, 1, N == 2 ? 40 : 12);
      o.max_extents.push_back(extents[k] + between(g, 1, 2 * extents[k]));
    }
    o.tile = tile();
    o.stripes.sf = 4096 * between(g, 1, 3);
    const std::vector<std::size_t> limits = o.max_extents;
    runtime rt(blocks(nodes, between(g, 36, 60)));
    using array = ooc_array<T, N, layout_tiled>;
    std::optional<array> a(std::in_place, rt, nodes.handle(), "a", create, extents, o);
    std::vector<T> plain(a->size(), fill);
    std::uint64_t serial = 0;
    for (int step = 0; step < 30; ++step) {
      switch (between(g, 0, 5)) {
        case 0:
        case 1: {
          const box<N> b = random_box<N>(g, extents);
          for_each_element<N>(b, extents, [&](const coordinates<N>& c, std::size_t at) {
            a->element(c) = plain[at] = value_of<T>(++serial);
          });
          break;
        }
        case 2:
          a.reset();
          if (between(g, 0, 1)) o.tile = tile();
          a.emplace(rt, nodes.handle(), "a", ooc::open, extents, o);
          REQUIRE(a->max_extents() == limits);
          break;
        default: {
          coordinates<N> next = extents;
          for (std::size_t k = 0; k < N; ++k)
            if (between(g, 0, 2) != 0) next[k] = between(g, 1, limits[k]);
          const T* const first = &a->element({});
          a->resize(next);
          REQUIRE(first == &a->element({}));
          plain = resized(plain, extents, next, fill);
          extents = next;
        }
      }
      if (between(g, 0, 1)) continue;  // what is not looked at is not in memory
      std::size_t wrong = 0;
      for_each_element<N>(a->whole(), extents, [&](const coordinates<N>& c, std::size_t at) {
        wrong += !(std::as_const(*a).element(c) == plain[at]);
      });
      INFO("step " << step);
      REQUIRE(wrong == 0);
    }
  }
}
