#include "runtime/pager/event_queue.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace ooc::detail;

touch_event miss_of(segment_state& s, block_index b) { return {&s, b, touch::read, true}; }

TEST_CASE("events are taken in the order in which they were posted", "[pager]") {
  segment_state s;
  event_queue q;
  for (block_index b = 0; b < 3; ++b) REQUIRE(q.post(miss_of(s, b)));
  for (block_index b = 0; b < 3; ++b) CHECK(q.take().block == b);
  CHECK(q.empty());
}

TEST_CASE("a full queue refuses an event, and takes one again once one is gone", "[pager]") {
  segment_state s;
  event_queue q;
  block_index posted = 0;
  while (q.post(miss_of(s, posted))) ++posted;
  CHECK(q.take().block == 0);
  CHECK(q.post(miss_of(s, posted)));
  CHECK_FALSE(q.post(miss_of(s, posted + 1)));
  for (block_index b = 1; b <= posted; ++b) REQUIRE(q.take().block == b);
  CHECK(q.empty());
}

TEST_CASE("touches that nobody waits for leave half of the queue to misses", "[pager]") {
  segment_state s;
  event_queue q;
  for (int i = 0; i < 100'000; ++i) q.post_if_quiet({&s, 0, touch::read, false});
  std::size_t misses = 0, touches = 0;
  while (q.post(miss_of(s, 1))) ++misses;
  while (!q.empty()) touches += !q.take().miss;
  CHECK(misses == touches);
}

TEST_CASE("a segment that is forgotten leaves the events and stalled misses of others", "[pager]") {
  segment_state gone, kept;
  event_queue q;
  // Over the end of the ring, too
  while (q.post(miss_of(gone, 0))) {
  }
  for (int i = 0; i < 100; ++i) q.take();
  for (block_index b = 0; b < 100; ++b) q.post(miss_of(b % 2 ? gone : kept, b));
  for (block_index b = 0; b < 4; ++b) q.stall(miss_of(b % 2 ? gone : kept, b));
  q.forget(gone);
  for (block_index b = 0; b < 100; b += 2) {
    REQUIRE_FALSE(q.empty());
    const touch_event e = q.take();
    CHECK((e.segment == &kept && e.block == b));
  }
  CHECK(q.empty());
  REQUIRE(q.stalled().size() == 2);
  CHECK(q.take_stalled().block == 0);
  CHECK(q.take_stalled().block == 2);
}

TEST_CASE("a miss that stalls again goes behind the others", "[pager]") {
  segment_state s;
  event_queue q;
  for (block_index b = 0; b < 2; ++b) q.stall(miss_of(s, b));
  q.stall(q.take_stalled());
  CHECK(q.take_stalled().block == 1);
  CHECK(q.take_stalled().block == 0);
}

}  // namespace
