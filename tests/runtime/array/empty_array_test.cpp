// Arrays whose first extent is 0: they hold nothing yet, and may grow.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "oocarray/any_array.hpp"
#include "oocarray/open_file.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class Array>
void check_empty(const Array& a) {
  CHECK(a.extent(0) == 0);
  CHECK(a.size() == 0);
  CHECK(a.begin() == a.end());
  CHECK(a.tiles().size() == 0);
  for (const auto& t : a.tiles()) FAIL("a tile of " << t.size());
  CHECK(a.local_rows() == std::pair<std::size_t, std::size_t>{0, 0});
}

/// Everything that may be asked of an array without elements.
template <class Array>
void use_empty(Array& a) {
  check_empty(a);
  a.overwrite({{0, 0}, {0, 70}});
  a.prefetch({{0, 0}, {0, 70}});
  a.sync();
  a.writeback();
  a.writeback(ooc::durable);
  a.invalidate();
  CHECK(a.dirty_blocks() == 0);
  const auto pinned = a.pin({{0, 0}, {0, 70}});
}

template <class Layout>
void begin_empty_and_grow(array_options<int> o, store_kind kind) {
  const test_store nodes(kind);
  runtime rt(memory(nodes.staging() + 512_KiB));
  {
    ooc_array<int, 2, Layout> a{rt, nodes.handle(), "a", create, {0, 70}, tile_if_used<Layout>(o)};
    use_empty(a);
  }
  {
    ooc_array<int, 2, Layout> a{rt, nodes.handle(), "a", ooc::open};
    CHECK(a.max_extents()[0] == 300);
    use_empty(a);
    a.resize(100);
    for (std::size_t i = 0; i < 100; ++i)
      for (std::size_t j = 0; j < 70; ++j) REQUIRE(a(i, j) == -7);
    for (int& v : a) v = 5;
    a.resize(0);
    use_empty(a);
    a.resize(300);
    for (const int v : std::as_const(a)) REQUIRE(v == -7);
    a(299, 69) = 9;
    a.resize(0);
  }
  ooc_array<int, 2, Layout> again{rt, nodes.handle(), "a", open_read_only};
  check_empty(again);
}

}  // namespace

TEST_CASE("an array begins without rows, grows, loses all of them and grows again") {
  for (const store_kind kind : {store_kind::in_memory, store_kind::local})
    for (const file_order order : {file_order::row_major, file_order::tiled}) {
      array_options<int> o{.order = order, .tile = {16, 32}, .fill = -7, .max_extents = {300}};
      begin_empty_and_grow<layout_right>(o, kind);
      begin_empty_and_grow<layout_tiled>(o, kind);
      o.block = 4_KiB;
      o.tile = {};
      begin_empty_and_grow<layout_right>(o, kind);
    }
}

TEST_CASE("an array that grows in all dimensions begins without rows") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 512_KiB));
  ooc_array<int, 2, layout_tiled> a{
      rt, nodes.handle(), "a", create, {0, 10}, {.order = file_order::tiled, .fill = 3, .max_extents = {50, 90}}};
  check_empty(a);
  a.resize({0, 60});
  check_empty(a);
  a.resize({20, 60});
  for (int& v : a) v = 5;
  a.resize({0, 90});
  a.resize({50, 90});
  for (const int v : std::as_const(a)) REQUIRE(v == 3);
}

TEST_CASE("an array of one dimension begins empty and is appended to") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<triple, 1> a{rt, nodes.handle(), "a", create_or_open, {0}, {.max_extents = {5000}}};
  CHECK(a.span().empty());
  for (std::size_t n = 1; n <= 5000; n += n) {
    a.resize(n);
    a[n - 1] = value_of<triple>(n);
  }
  CHECK(a[0] == value_of<triple>(1));
  CHECK(a[4095] == value_of<triple>(4096));
}

TEST_CASE("an array without rows that was given no limit stays as it is, and says so") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<int, 2> a{rt, nodes.handle(), "a", create, {0, 3}};
  CHECK_THROWS_WITH(a.resize(1), Contains("can be 0 to 0, not 1") && Contains("options.max_extents"));
  using matrix = ooc_array<int, 2>;
  CHECK_THROWS_WITH((matrix{rt, nodes.handle(), "b", create, {3, 0}}),
                    Contains("{3, 0}") && Contains("only the first"));
}

TEST_CASE("an array without a type may have no elements") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 256_KiB));
  const std::size_t extents[] = {0, 3};
  for (const auto layout : {any_array::memory_layout::right, any_array::memory_layout::tiled}) {
    any_array a{rt,
                nodes.handle(),
                layout == any_array::memory_layout::right ? "r" : "t",
                create,
                {"f8", 8},
                extents,
                {.max_extents = {10}},
                layout};
    CHECK(a.size() == 0);
    CHECK(a.tiles() == 0);
    a.resize(std::vector<std::size_t>{7, 3});
    CHECK(a.size() == 21);
    a.resize(std::vector<std::size_t>{0, 3});
    CHECK(a.size() == 0);
  }
}

TEST_CASE("a file without elements is used in place") {
  const temporary_folder folder;
  runtime rt(memory(256_KiB));
  const std::string raw = (folder / "a.raw").string(), npy = (folder / "a.npy").string();
  std::ofstream(raw) << "12345678";
  {
    const auto a = open_file<double, 2>(rt, raw, ooc::open, {.extents = {0, 3}, .offset = 8});
    check_empty(a);
  }
  CHECK(open_file<double, 1>(rt, raw, open_read_only, {.offset = 8}).size() == 0);
  CHECK_THROWS_WITH((open_file<double, 2>(rt, raw, open_read_only, {.extents = {3, 0}})), Contains("only the first"));
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }";
  std::ofstream(npy, std::ios::binary) << "\x93NUMPY\x01" << '\0' << 'v' << '\0' << header
                                       << std::string(117 - header.size(), ' ') << '\n';
  check_empty(open_file<double, 2>(rt, npy, open_read_only));
}
