// Every refusal names the thing, the limit and the remedy.

#include <catch2/catch.hpp>

#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

template <class F>
std::error_code code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return {};
}

struct small_store {
  memory_store nodes{2};
  store s = nodes.handle();
  runtime rt{memory(1_MiB)};
};

template <class T, std::size_t N, class Layout = layout_right, class... Args>
void make(small_store& f, const char* path, Args&&... args) {
  const ooc_array<T, N, Layout> a(f.rt, f.s, path, std::forward<Args>(args)...);
}

using extents1 = std::array<std::size_t, 1>;
using extents2 = std::array<std::size_t, 2>;

}  // namespace

TEST_CASE("opening checks element type, rank and extents against those recorded") {
  small_store f;
  make<double, 2>(f, "run/a", create, extents2{10, 20});
  CHECK_THROWS_WITH((make<float, 2>(f, "run/a", ooc::open)),
                    Contains("'run/a'") && Contains("holds f8 elements of 8 bytes") && Contains("f4"));
  CHECK_THROWS_WITH((make<std::int64_t, 2>(f, "run/a", ooc::open)), Contains("i8"));
  CHECK_THROWS_WITH((make<double, 1>(f, "run/a", ooc::open)),
                    Contains("{10, 20}") && Contains("rank 2") && Contains("asked for was rank 1"));
  CHECK_THROWS_WITH((make<double, 2>(f, "run/a", ooc::open, extents2{20, 10})),
                    Contains("{10, 20}") && Contains("{20, 10}"));
  CHECK(code_of([&] { make<float, 2>(f, "run/a", ooc::open); }) == errc::type_mismatch);
  make<double, 2>(f, "run/a", ooc::open, extents2{10, 20});
  make<double, 2, layout_tiled>(f, "run/a", open_read_only);
}

TEST_CASE("element types have the field's names, and users may name theirs") {
  CHECK(element_type<double>::name() == "f8");
  CHECK(element_type<float>::name() == "f4");
  CHECK(element_type<std::complex<float>>::name() == "c8");
  CHECK(element_type<std::complex<double>>::name() == "c16");
  CHECK(element_type<char>::name() == (std::is_signed_v<char> ? "i1" : "u1"));
  CHECK(element_type<std::int16_t>::name() == "i2");
  CHECK(element_type<unsigned>::name() == "u4");
  CHECK(element_type<long long>::name() == "i8");
  CHECK(element_type<long>::name() == "i8");
  CHECK(element_type<std::byte>::name() == "u1");
  CHECK(element_type<bool>::name() == "b1");
  CHECK(element_type<triple>::name() == "struct24");
#ifdef __STDCPP_BFLOAT16_T__
  CHECK(element_type<std::bfloat16_t>::name() == "struct2");  // f2 would have other values
#endif
  CHECK(element_type<store_kind>::name() == "i4");
}

TEST_CASE("paths: missing, taken, a folder") {
  small_store f;
  CHECK(code_of([&] { make<int, 1>(f, "none", ooc::open); }) == std::errc::no_such_file_or_directory);
  CHECK_THROWS_WITH((make<int, 1>(f, "none", ooc::open)), Contains("none"));
  make<int, 1>(f, "x/y/z", create, extents1{10});
  CHECK(code_of([&] { make<int, 1>(f, "x/y/z", create, extents1{10}); }) == std::errc::file_exists);
  CHECK_THROWS_WITH((make<int, 1>(f, "x/y/z", create, extents1{10})),
                    Contains("'x/y/z' exists already") && Contains("replace"));
  CHECK(code_of([&] { make<int, 1>(f, "x/y", ooc::open); }) == std::errc::is_a_directory);
  CHECK(code_of([&] { make<int, 1>(f, "x/y/z/w", create, extents1{10}); }) == std::errc::not_a_directory);
}

TEST_CASE("create with replace makes the file anew") {
  small_store f;
  {
    ooc_array<int, 1> a{f.rt, f.s, "a", create, {10}};
    a[3] = 3;
    CHECK_THROWS_WITH((make<int, 1>(f, "a", create, extents1{10}, array_options<int>{.replace = true})),
                      Contains("already open"));
  }
  const ooc_array<double, 2> b{f.rt, f.s, "a", create, {5, 5}, {.replace = true}};
  CHECK(b[0][0] == 0);
  make<int, 1>(f, "fresh", create, extents1{10}, array_options<int>{.replace = true});
}

TEST_CASE("a second open of a file in the process is refused until the first is closed") {
  small_store f;
  ooc_array<int, 1> a{f.rt, f.s, "run/a", create, {10}};
  CHECK_THROWS_WITH((make<int, 1>(f, "run/a", ooc::open)),
                    Contains("'run/a' is already open in this process (an ooc_array)"));
  CHECK(code_of([&] { make<int, 1>(f, "run//a", open_read_only); }) == errc::busy);
  a.close();
  make<int, 1>(f, "run/a", ooc::open);
}

TEST_CASE(
    "any number of readers in a process may have a file open, by the same store or another one, and no writer with "
    "them") {
  small_store f;
  {
    ooc_array<int, 1> a{f.rt, f.s, "run/a", create, {10}};
    a[3] = 3;
  }
  const store again(std::make_shared<storage::store_core>(
      "memory:", "test", f.nodes.metadata, storage::striped_file::nodes{f.nodes.nodes[0], f.nodes.nodes[1]}));
  ooc_array<int, 1> first{f.rt, f.s, "run/a", open_read_only}, second{f.rt, f.s, "run//a", open_read_only};
  const ooc_array<int, 1> third{f.rt, again, "run/a", open_read_only};
  CHECK(std::as_const(first)[3] == 3);
  CHECK(std::as_const(second)[3] == 3);
  first.close();
  CHECK(std::as_const(second)[4] == 0);
  CHECK_THROWS_WITH((make<int, 1>(f, "run/a", ooc::open)),
                    Contains("(an ooc_array, for reading)") && Contains("to write to it"));
  second.close();
  CHECK(third[3] == 3);
  CHECK(code_of([&] { make<int, 1>(f, "run/a", ooc::open); }) == errc::busy);
}

TEST_CASE("sizes and shapes that cannot be are refused, and nothing is made") {
  small_store f;
  const std::size_t big = std::size_t{1} << 62;
  CHECK_THROWS_WITH((make<double, 2>(f, "a", create, extents2{big, 4})),
                    Contains("'a'") && Contains("4611686018427387904") && Contains("2^63 - 1"));
  CHECK_THROWS_WITH((make<double, 2>(f, "a", create, extents2{10, 0})), Contains("{10, 0}") && Contains("at least 1"));
  CHECK_THROWS_WITH((make<double, 2>(f, "a", create, extents2{10, 10}, array_options<double>{.block = 5000})),
                    Contains("'a'") && Contains("5000 bytes is not a multiple of 4096") && Contains("8192"));
  CHECK_THROWS_WITH(
      (make<double, 2, layout_tiled>(f, "a", create, extents2{10, 10}, array_options<double>{.tile = {3, 4}})),
      Contains("'a'") && Contains("{3, 4} is not a power of two") && Contains("{4, 4}"));
  CHECK_THROWS_WITH(
      (make<double, 2, layout_tiled>(f, "a", create, extents2{10, 10}, array_options<double>{.tile = {4}})),
      Contains("{4} has 1 dimensions"));
  for (const std::vector<std::size_t>& tile : {std::vector<std::size_t>{4, 4}, {4}, {1, 2, 3}})
    CHECK_THROWS_WITH((make<double, 2>(f, "a", create, extents2{10, 10}, array_options<double>{.tile = tile})),
                      Contains("'a'") && Contains("options.tile {") && Contains("file_order::tiled"));
  CHECK_THROWS_WITH((make<double, 2>(f, "a", create, extents2{4096, 4096}, array_options<double>{.block = 1_MiB})),
                    Contains("budget"));
  CHECK(code_of([&] {
          make<double, 2>(f, "a", create, extents2{4096, 4096}, array_options<double>{.block = 1_MiB});
        }) == errc::budget_too_small);
  // None of them left a file behind.
  CHECK(code_of([&] { make<double, 2>(f, "a", ooc::open); }) == std::errc::no_such_file_or_directory);
  // A file in tiles of any shape is fine for layout_right.
  make<double, 2>(f, "a", create, extents2{10, 10}, array_options<double>{.order = file_order::tiled, .tile = {3, 4}});
  make<double, 2, layout_tiled>(f, "a", ooc::open);  // with a default tile in memory
}

TEST_CASE("a file that is full at creation leaves nothing behind") {
  small_store f;
  for (const auto& n : f.nodes.nodes) n->set_capacity(1000);
  CHECK(code_of([&] { make<double, 1>(f, "a", create, extents1{100000}); }) == std::errc::no_space_on_device);
  for (const auto& n : f.nodes.nodes) n->set_capacity(10000000);
  make<double, 1>(f, "a", create, extents1{100000});
}

TEST_CASE("a file without recorded type opens as what is asked for, if its size fits") {
  small_store f;
  storage::new_file plain;
  plain.size = 8000;
  plain.striping.sf = 4096;
  f.nodes.core->create("raw", plain);
  {
    ooc_array<double, 2> a{f.rt, f.s, "raw", ooc::open, {10, 100}};
    a[9][99] = 1;
    CHECK_THROWS_WITH(a.resize(5), Contains("'raw'") && Contains("cannot be resized"));
  }
  {
    const ooc_array<std::uint8_t, 1> b{f.rt, f.s, "raw", open_read_only, {7999}};
    CHECK(b[7998] == 0xf0);
  }
  CHECK_THROWS_WITH((make<double, 2>(f, "raw", ooc::open, extents2{10, 101})),
                    Contains("'raw'") && Contains("8080 bytes") && Contains("8000"));
  CHECK_THROWS_WITH((make<double, 2>(f, "raw", ooc::open)), Contains("say its extents"));
}

TEST_CASE("at() names array, dimension, index and extent") {
  small_store f;
  ooc_array<int, 2> a{f.rt, f.s, "run/a", create, {10, 20}};
  a.at(9, 19) = 3;
  CHECK(std::as_const(a).at(9, 19) == 3);
  CHECK_THROWS_AS(a.at(10, 0), std::out_of_range);
  CHECK_THROWS_WITH(a.at(10, 0), "array 'run/a': index 10 in dimension 0 is outside the extent 10");
  CHECK_THROWS_WITH(std::as_const(a).at(0, 20), Contains("index 20 in dimension 1") && Contains("extent 20"));
}

TEST_CASE("boxes outside the array are refused with both, empty ones are nothing") {
  small_store f;
  ooc_array<int, 2> a{f.rt, f.s, "a", create, {10, 20}};
  CHECK_THROWS_WITH(a.prefetch({{0, 0}, {11, 20}}),
                    Contains("prefetch() of array 'a'") && Contains("{11, 20}") && Contains("{10, 20}"));
  CHECK_THROWS_WITH(a.overwrite({{5, 0}, {4, 20}}), Contains("overwrite()") && Contains("{5, 0}"));
  CHECK_THROWS_WITH(a.pin({{0, 0}, {1, 21}}), Contains("pin()"));
  a.prefetch({{3, 3}, {3, 3}});
  a.overwrite({{10, 20}, {10, 20}});
  CHECK(a.pin({{3, 3}, {3, 10}}).span().empty());
}

TEST_CASE("a closed array refuses every call and names itself") {
  small_store f;
  ooc_array<int, 1> a{f.rt, f.s, "run/a", create, {10}};
  a[3] = 4;
  a.close();
  a.close();
  CHECK(!a.is_open());
  const auto closed = Contains("'run/a' has been closed");
  CHECK_THROWS_WITH(a.writeback(), closed);
  CHECK_THROWS_WITH(a.invalidate(), closed);
  CHECK_THROWS_WITH(a.prefetch({{0}, {1}}), closed);
  CHECK_THROWS_WITH(a.overwrite({{0}, {1}}), closed);
  CHECK_THROWS_WITH(a.pin({{0}, {1}}), closed);
  CHECK_THROWS_WITH(a.resize(5), closed);
  CHECK_THROWS_WITH(a.at(3), closed);
  CHECK_THROWS_WITH(a.dirty_blocks(), closed);
  CHECK_THROWS_WITH(a.tiles(access_mode::read), closed);
  CHECK(code_of([&] { a.writeback(); }) == errc::closed);
}
