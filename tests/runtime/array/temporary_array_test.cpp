// Temporary arrays: room for results that are not to stay.

#include <catch2/catch.hpp>
#include <optional>

#include "oocarray/algorithm/sort.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/service/store_core.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

using array = ooc_array<int, 1>;

TEST_CASE("a temporary array spills what memory has no room for, has no name for others, and goes with its object") {
  const test_store nodes(GENERATE(store_kind::in_memory, store_kind::local));
  const store s = nodes.handle();
  const std::size_t before = s.core()->metadata().files().size();
  runtime rt(memory(nodes.staging() + 512_KiB));
  {
    array a{rt, s, "result", create, {1 << 20}, {.temporary = true}};
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = value_of<int>(i);
    CHECK(rt.stats().bytes_written > a.size() * sizeof(int) / 2);
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == value_of<int>(i));
    CHECK_THROWS_WITH(array(rt, s, "result", ooc::open), Contains("there is no 'result'"));
    CHECK_THROWS_WITH(array(rt, s, "result", create, {1}), Contains("just being made"));
    CHECK_THROWS_WITH(a.resize(1), Contains("temporary"));
  }
  CHECK(s.core()->metadata().files().size() == before);
  const array other{rt, s, "result", create, {1}};
  CHECK(other[0] == 0);
}

TEST_CASE("nothing of a temporary array is written when it closes or its runtime ends") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  std::optional<runtime> rt(std::in_place, memory(nodes.staging() + 1_MiB));
  std::optional<array> left_open;
  {
    array a{*rt, s, "a", create, {1000}, {.temporary = true}};
    a[7] = 1;
    CHECK(a.dirty_blocks() == 1);
    a.close();
    array b{*rt, s, "a", create, {1000}, {.temporary = true}};
    b[7] = 1;
  }
  CHECK(rt->stats().bytes_written == 0);
  left_open.emplace(*rt, s, "a", create, std::array<std::size_t, 1>{1000}, array_options<int>{.temporary = true});
  (*left_open)[7] = 1;
  const std::uint64_t written = s.stats().bytes_written;
  rt.reset();
  CHECK(s.stats().bytes_written == written);
}

TEST_CASE("a temporary array is sorted as any other, with a temporary file beside it") {
  const test_store nodes(store_kind::local);
  const store s = nodes.handle();
  runtime rt(memory(nodes.staging() + 2_MiB));
  array a{rt, s, "a", create, {1 << 20}, {.temporary = true}};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = value_of<int>(i);
  ooc::sort(a);
  for (std::size_t i = 1; i < a.size(); ++i) REQUIRE(a[i - 1] <= a[i]);
}

TEST_CASE("what a temporary array cannot be is refused, and nothing is made") {
  const test_store nodes(store_kind::in_memory);
  const store s = nodes.handle();
  runtime rt(memory(nodes.staging() + 512_KiB));
  for (const array_options<int>& o :
       {array_options<int>{.commits = true, .temporary = true}, array_options<int>{.temporary = true, .replace = true},
        array_options<int>{.temporary = true, .shared = true}})
    CHECK_THROWS_WITH(array(rt, s, "a", create, {1000}, o), Contains("options.temporary") && Contains("'a'"));
  { const array a{rt, s, "a", create, {1000}}; }
  CHECK_THROWS_WITH(array(rt, s, "a", ooc::open, {.temporary = true}),
                    Contains("options.temporary is for an array that is made"));
}

}  // namespace
