// Arrays whose type and rank are known at run time: the same files, the same addresses, the same
// errors.

#include "oocarray/any_array.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "oocarray/file.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using sizes = std::vector<std::size_t>;

std::error_code code_of(const std::function<void()>& call, const std::string& named) {
  try {
    call();
  } catch (const error& e) {
    INFO(e.what());
    CHECK(std::string(e.what()).find(named) != std::string::npos);
    return e.code();
  }
  return {};
}

}  // namespace

TEST_CASE("what was written through a typed array is read without knowing its type, and back") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 16));
  {
    ooc_array<double, 2> a{rt, s, "a", create, {100, 70}, {.block = 4_KiB}};
    std::iota(a.begin(), a.end(), 0.0);
  }
  {
    any_array a{rt, s, "a", open};
    CHECK(a.element_type() == "f8");
    CHECK(a.element_size() == 8);
    CHECK(a.extents() == sizes{100, 70});
    CHECK(a.strides() == sizes{560, 8});
    double* const p = reinterpret_cast<double*>(a.data());
    CHECK(p[7 * 70 + 3] == 493);
    CHECK(std::accumulate(p, p + a.size(), 0.0) == 7000.0 * 6999 / 2);
    p[6999] = -1;
  }
  const ooc_array<double, 2> a{rt, s, "a", open_read_only};
  CHECK(a[99][69] == -1);
}

TEST_CASE("an array of a type that C++ does not name is made, filled and opened again") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  const std::vector<std::byte> fill{std::byte{1}, std::byte{2}, std::byte{3}};
  {
    any_array a{rt, s, "rgb", create_or_open, {"struct3", 3}, sizes{50, 40, 2}, {.fill = fill}};
    CHECK(a.data()[3 * (17 * 80 + 5) + 1] == std::byte{2});
    a.set_attribute("colours", "rgb");
  }
  any_array a{rt, s, "rgb", open_read_only};
  CHECK(a.rank() == 3);
  CHECK(a.bytes() == 12000);
  CHECK_FALSE(a.writable());
  CHECK(a.attributes() == std::map<std::string, std::string>{{"colours", "rgb"}});
  CHECK(code_of([&] { a.set_attribute("colours", "bgr"); }, "reading only") == errc::invalid_request);
}

TEST_CASE("tiles of both layouts cover the array, each where the elements are") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  {
    ooc_array<std::int32_t, 2> a{rt, s, "a", create, {70, 90}};
    std::iota(a.begin(), a.end(), 0);
  }
  for (const auto layout : {any_array::memory_layout::right, any_array::memory_layout::tiled}) {
    any_array a{rt, s, "a", open_read_only, {.block = 4_KiB}, layout};
    std::size_t seen = 0;
    for (std::size_t k = 0; k < a.tiles(); ++k) {
      const any_array::tile t = a.tile_at(k);
      for (std::size_t i = t.box.lower[0]; i < t.box.upper[0]; ++i)
        for (std::size_t j = t.box.lower[1]; j < t.box.upper[1]; ++j) {
          const std::byte* const at =
              t.data + (i - t.box.lower[0]) * t.strides[0] + (j - t.box.lower[1]) * t.strides[1];
          seen += *reinterpret_cast<const std::int32_t*>(at) == static_cast<std::int32_t>(i * 90 + j);
        }
    }
    CHECK(seen == a.size());
    CHECK(a.tiles() > 1);
  }
  any_array tiled{rt, s, "a", open_read_only, {}, any_array::memory_layout::tiled};
  CHECK(code_of([&] { tiled.data(); }, "tile by tile") == errc::invalid_request);
}

TEST_CASE("an untyped array refuses what it cannot be, by name") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  const auto make = [&](const element_format& type, const sizes& extents, const any_array::options_type& o = {}) {
    return [&rt, &s, type, extents, o] { any_array a{rt, s, "a", create, type, extents, o}; };
  };
  CHECK(code_of(make({"f8", 8}, {}), "0 dimensions") == errc::invalid_request);
  CHECK(code_of(make({"f8", 8}, sizes(9, 1)), "9 dimensions") == errc::invalid_request);
  CHECK(code_of(make({"", 0}, {3}), "0 bytes") == errc::invalid_request);
  CHECK(code_of(make({"f8", 8}, {3}, {.fill = std::vector<std::byte>(4)}), "4 bytes") == errc::invalid_request);
  file::create(s, "bytes", {.size = 100});
  CHECK(code_of([&] { any_array a(rt, s, "bytes", open); }, "not recorded") == errc::type_mismatch);
  any_array a{rt, s, "a", create, {"f8", 8}, sizes{4}};
  a.close();
  CHECK(code_of([&] { a.data(); }, "closed") == errc::closed);
}

TEST_CASE("attributes of an array follow it to its new name, and the one removed is gone") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  ooc_array<float, 1> a{rt, s, "old", create, {100}};
  a.set_attribute("units", "m");
  a.set_attribute("origin", "north");
  s.rename("old", "new");
  CHECK(a.path() == "old");
  CHECK(a.current_path() == "new");
  a.remove_attribute("origin");
  CHECK(a.attributes() == std::map<std::string, std::string>{{"units", "m"}});
  CHECK(s.attributes("new") == a.attributes());
  CHECK(code_of([&] { a.remove_attribute("origin"); }, "no attribute 'origin'") ==
        std::errc::no_such_file_or_directory);
}

TEST_CASE("a file that an array writes cannot be removed until the array is closed") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  ooc_array<float, 1> a{rt, s, "runs/a", create, {5000}};
  CHECK(code_of([&] { s.remove("runs/a"); }, "'runs/a' is open for writing") == errc::busy);
  CHECK(code_of([&] { s.remove_all("runs"); }, "'runs/a' is open for writing") == errc::busy);
  a[4999] = 3;
  a.close();
  s.remove_all("runs");
  CHECK_FALSE(s.exists("runs"));
}

TEST_CASE("files of bool that were recorded as unsigned bytes open as bool, and the other way round") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(blocks(nodes, 64));
  { any_array a{rt, s, "old", create, {"u1", 1}, sizes{5}}; }
  { any_array a{rt, s, "new", create, {"b1", 1}, sizes{5}}; }
  CHECK_NOTHROW(ooc_array<bool, 1>(rt, s, "old", open));
  CHECK_NOTHROW(ooc_array<std::uint8_t, 1>(rt, s, "new", open));
  CHECK_THROWS_AS((ooc_array<std::int8_t, 1>(rt, s, "new", open)), usage_error);
}
