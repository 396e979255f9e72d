#include "runtime/pager/memory_budget.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace ooc;
using namespace ooc::detail;
using Catch::Matchers::Contains;

const std::uint64_t page = page_bytes;

/// A budget without anything that could be written to make room.
struct fixture {
  explicit fixture(std::uint64_t bytes) : state(bytes), budget(state, {.memory = bytes}, no_room) {}

  static bool no_room(unique_lock&) { return false; }

  void open(segment_state& s, std::uint64_t block_bytes) {
    s.options.name = "a";
    s.options.block_bytes = block_bytes;
    throw_if(admit(s));
  }

  failure admit(segment_state& s) {
    const lock_guard l(state.mutex());
    if (failure f = budget.check_needs_of(s)) return f;
    state.segments.push_back(&s);
    return {};
  }

  pager_state state;
  memory_budget budget;
};

TEST_CASE("what is reserved is off the budget until it is given back", "[pager]") {
  fixture f(100 * page);
  {
    memory_budget::reservation r = f.budget.reserve(40 * page, "a loan");
    CHECK(f.budget.budget() == 60 * page);
    memory_budget::reservation moved = std::move(r);
    CHECK(f.budget.budget() == 60 * page);
  }
  CHECK(f.budget.budget() == 100 * page);
}

TEST_CASE("a reservation leaves what one instruction can need, and names who asks", "[pager]") {
  fixture f(100 * page);
  segment_state s;
  f.open(s, 10 * page);  // 40 pages
  CHECK_THROWS_WITH(f.budget.reserve(61 * page, "a loan"), Contains("a loan needs"));
  CHECK_NOTHROW(f.budget.reserve(60 * page, "a loan"));
}

TEST_CASE("the buffers of a store are accounted once, and given back when it is gone", "[pager]") {
  fixture f(100 * page);
  auto store = std::make_shared<int>();
  CHECK(f.budget.account_store(store, 20 * page));
  CHECK_FALSE(f.budget.account_store(store, 20 * page));
  CHECK(f.budget.budget() == 80 * page);
  store = std::make_shared<int>();
  CHECK(f.budget.account_store(store, 30 * page));
  CHECK(f.budget.budget() == 70 * page);
}

TEST_CASE("a segment whose blocks do not fit is refused with a block that would", "[pager]") {
  fixture f(100 * page);
  segment_state s;
  CHECK_THROWS_WITH(f.open(s, 30 * page),
                    Contains("choose a block of at most " + std::to_string(15 * page) + " bytes"));
  CHECK_NOTHROW(f.open(s, 15 * page));
}

TEST_CASE("pins are counted while they leave enough, and again after they are given back", "[pager]") {
  fixture f(100 * page);
  segment_state s;
  f.open(s, 10 * page);
  const block_range six[] = {{0, 6}}, one[] = {{6, 7}};
  CHECK_FALSE(f.budget.count_pins(s, six));
  const failure refused = f.budget.count_pins(s, one);
  REQUIRE(refused);
  CHECK_THAT(refused.what, Contains("cannot pin " + std::to_string(10 * page) + " bytes"));
  {
    const lock_guard l(f.state.mutex());
    f.budget.uncount_pins(s, six);
  }
  CHECK_FALSE(f.budget.count_pins(s, one));
}

TEST_CASE("the default block becomes smaller where stores have taken of the budget", "[pager]") {
  fixture f(64 * page);
  CHECK(f.budget.default_block_bytes() == 2 * page);
  const auto loan = f.budget.reserve(55 * page, "a loan");
  CHECK(f.budget.default_block_bytes() == page);
}

}  // namespace
