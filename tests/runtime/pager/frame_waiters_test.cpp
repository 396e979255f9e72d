#include "runtime/pager/frame_waiters.hpp"

#include <catch2/catch.hpp>
#include <thread>

namespace {

using namespace ooc;
using namespace ooc::detail;

TEST_CASE("who looked before a frame was made evictable does not sleep", "[pager]") {
  resident_set memory(1 << 20);
  service_bell bell;
  frame_waiters waiters(memory, bell);
  const std::uint32_t seen = waiters.look();
  waiters.made_evictable();
  waiters.wait(seen);  // would not return
  CHECK_FALSE(waiters.any());
}

TEST_CASE("who waits for a frame is woken, and rings for the service thread", "[pager]") {
  resident_set memory(1 << 20);
  service_bell bell;
  frame_waiters waiters(memory, bell);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t heard = bell.heard();
    std::thread waiting([&, seen = waiters.look()] { waiters.wait(seen); });
    while (!waiters.any()) bell.sleep(heard, nullptr);
    waiters.made_evictable();
    waiting.join();
  }
  CHECK_FALSE(waiters.any());
}

TEST_CASE("a frame that is made evictable rings for the service thread while that waits", "[pager]") {
  resident_set memory(1 << 20);
  service_bell bell;
  frame_waiters waiters(memory, bell);
  std::uint32_t heard = bell.heard();
  waiters.made_evictable();
  CHECK(bell.heard() == heard);
  waiters.service_begins();
  waiters.made_evictable();
  CHECK(bell.heard() != heard);
  heard = bell.heard();
  waiters.service_ends();
  waiters.made_evictable();
  CHECK(bell.heard() == heard);
}

TEST_CASE("a starved write is known until it is served or its segment is gone", "[pager]") {
  resident_set memory(1 << 20);
  service_bell bell;
  frame_waiters waiters(memory, bell);
  segment_state s, other;
  const lock_guard l(memory.mutex());
  CHECK_FALSE(waiters.write_starves());
  waiters.write_found_none(s, 3);
  CHECK(waiters.starved_write().block == 3);
  waiters.forget(other);
  CHECK(waiters.starved_write().segment == &s);
  waiters.forget(s);
  CHECK_FALSE(waiters.write_starves());
  waiters.write_found_none(other, 4);
  CHECK(waiters.starved_write().segment == &other);
  waiters.write_found_one();
  CHECK_FALSE(waiters.write_starves());
}

}  // namespace
