// When blocks are modified, written, forgotten, and what happens when writing fails.

#include <catch2/catch.hpp>
#include <numeric>

#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

runtime_options roomy(const store& s) { return memory(s.core()->staging_bytes() + 256_KiB); }

}  // namespace

TEST_CASE("reading modifies nothing, neither through const arrays nor others") {
  memory_store nodes(2);
  runtime rt(roomy(nodes.handle()));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {100, 100}};
  const auto& c = a;
  double sum = std::accumulate(c.begin(), c.end(), 0.0);
  sum += c[3][4] + c(5, 6) + c.at(7, 8) + *c.data();
  sum += a[3][4] + a(5, 6);  // not const, and still only reads
  for (const auto t : c.tiles()) sum += t(0, 0);
  CHECK(sum == 0);
  CHECK(a.dirty_blocks() == 0);
  a.writeback();
  CHECK(nodes.handle().stats().write_requests == 0);
  static_assert(std::is_same_v<decltype(c[0][0]), const double&>);
  static_assert(std::is_same_v<decltype(a[0][0]), double&>);
  static_assert(std::is_same_v<decltype(c(0, 0)), const double&>);
  static_assert(std::is_same_v<decltype(c.data()), const double*>);
}

TEST_CASE("writeback makes data survive, durable says so to every node") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 256_KiB));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {5000}};
  std::iota(a.begin(), a.end(), 0);
  CHECK(a.dirty_blocks() > 0);
  const auto syncs = nodes.handle().stats().syncs;
  a.writeback();
  CHECK(a.dirty_blocks() == 0);
  CHECK(nodes.handle().stats().syncs == syncs);
  a.writeback(durable);
  CHECK(nodes.handle().stats().syncs > syncs);
  a.invalidate();
  CHECK(a[4999] == 4999);
}

TEST_CASE("invalidate refuses to lose modified blocks unless it is told to") {
  memory_store nodes(2);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 1> a{rt, nodes.handle(), "run/a", create, {5000}};
  a[3] = 1;
  a.writeback();
  a[3] = 2;
  CHECK_THROWS_WITH(a.invalidate(), Contains("'run/a'") && Contains("1 modified blocks") && Contains("writeback()") &&
                                        Contains("discard"));
  CHECK(a[3] == 2);
  a.invalidate(discard);
  CHECK(a[3] == 1);
  CHECK(a.dirty_blocks() == 0);
}

TEST_CASE("invalidate shows what another process wrote") {
  memory_store nodes(1);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {100}};
  CHECK(a[7] == 0);
  const int value = 77;
  const auto file = nodes.core->open("a", storage::open_mode::read_write).file;
  throw_if(
      file->write(request::contiguous(7 * sizeof value, sizeof value), reinterpret_cast<const std::byte*>(&value)));
  CHECK(a[7] == 0);
  a.invalidate();
  CHECK(a[7] == 77);
}

TEST_CASE("a failed write leaves its blocks modified, says array, node and cause, and can be retried") {
  memory_store nodes(2);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 1> a{rt, nodes.handle(), "plate/a", create, {5000}, {.block = 4_KiB}};
  std::iota(a.begin(), a.end(), 0);
  const std::uint64_t dirty = a.dirty_blocks();
  nodes.nodes[1]->fail(io_kind::write, std::make_error_code(std::errc::no_space_on_device));
  try {
    a.writeback();
    FAIL("writeback must throw");
  } catch (const io_error& e) {
    CHECK(e.code() == std::errc::no_space_on_device);
    CHECK_THAT(e.what(), Contains("plate/a") && Contains("block") && Contains("memory1"));
  }
  CHECK(a.dirty_blocks() > 0);
  CHECK(a.dirty_blocks() <= dirty);
  CHECK_THROWS_AS(a.close(), io_error);
  REQUIRE(a.is_open());
  CHECK(a[4999] == 4999);
  nodes.nodes[1]->heal();
  a.writeback();
  CHECK(a.dirty_blocks() == 0);
  a.invalidate();
  for (int i = 0; i < 5000; ++i) REQUIRE(a[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a destructor that cannot write back reports it and does not throw") {
  memory_store nodes(1);
  runtime rt(roomy(nodes.handle()));
  {
    ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {100}};
    a[0] = 1;
    nodes.nodes[0]->fail(io_kind::write, std::make_error_code(std::errc::io_error));
  }
  nodes.nodes[0]->heal();
  const ooc_array<int, 1> a{rt, nodes.handle(), "a", open_read_only};
  CHECK(a[0] == 0);
}

TEST_CASE("a durable writeback that fails names the array") {
  memory_store nodes(2);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {100}};
  a[0] = 1;
  nodes.nodes[0]->fail(io_kind::sync, std::make_error_code(std::errc::io_error));
  CHECK_THROWS_WITH(a.writeback(durable), Contains("'a' cannot be made durable") && Contains("memory0"));
  a.writeback();
}

TEST_CASE("a pin that cannot be read throws and leaves nothing pinned") {
  memory_store nodes(1);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {10000}, {.block = 4_KiB}};
  nodes.nodes[0]->fail(io_kind::read, std::make_error_code(std::errc::io_error));
  CHECK_THROWS_WITH(a.pin(a.whole()), Contains("'a'") && Contains("memory0"));
  nodes.nodes[0]->heal();
  a.invalidate();
  CHECK(a.pin(a.whole()).span().size() == 10000);
  a.close();
}

TEST_CASE("a read-only array reads, and refuses everything else") {
  memory_store nodes(2);
  runtime rt(roomy(nodes.handle()));
  ooc_array<int, 2>{rt, nodes.handle(), "a", create, {10, 10}, {.fill = 4, .max_extents = {20}}};
  ooc_array<int, 2> a{rt, nodes.handle(), "a", open_read_only};
  CHECK(!a.writable());
  CHECK(std::as_const(a)[9][9] == 4);
  CHECK(std::as_const(a).pin({{0, 0}, {2, 2}}).rows().size() == 2);
  CHECK_THROWS_WITH(a.overwrite(a.whole()), Contains("'a' is open for reading only") && Contains("ooc::open"));
  CHECK_THROWS_WITH(a.pin(a.whole()), Contains("reading only"));
  CHECK_THROWS_WITH(a.resize(5), Contains("reading only"));
  CHECK_THROWS_WITH(a.tiles(access_mode::write), Contains("reading only"));
  a.writeback();
  a.invalidate();
  a.close();
}

TEST_CASE("POCCS buffers limit one array within the budget, and say what they were rounded to") {
  memory_store nodes(1);
  runtime rt(roomy(nodes.handle()));
  const store s = nodes.handle();
  ooc_array<double, 1> a{rt, s, "a", create, {100000}, {.buffers = 2, .elements_per_buffer = 1000}};
  CHECK(a.buffers().buffers == 4);
  CHECK(a.buffers().elements_per_buffer == 1024);
  CHECK(a.buffers().block_bytes == 8_KiB);
  CHECK(std::accumulate(a.begin(), a.end(), 0.0) == 0);
  CHECK(rt.stats().resident_bytes <= 4 * 8_KiB);
  ooc_array<double, 2, layout_tiled> t{rt, s, "t", create, {100, 1000}, {.elements_per_buffer = 600}};
  CHECK(t.buffers().elements_per_buffer == 1024);
  CHECK(t.buffers().buffers == 0);
  CHECK_THROWS_WITH((ooc_array<double, 1>{rt, s, "b", create, {100000}, {.buffers = 1000, .elements_per_buffer = 512}}),
                    Contains("1000 buffers of 4096 bytes exceed the budget"));
  CHECK_THROWS_WITH((ooc_array<double, 1>{rt, s, "b", create, {100000}, {.block = 4_KiB, .elements_per_buffer = 512}}),
                    Contains("give one"));
}
