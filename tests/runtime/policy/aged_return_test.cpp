#include "runtime/policy/aged_return.hpp"

#include <catch2/catch.hpp>

using ooc::detail::aged_return;

namespace {

/// Of so many blocks that aged, one in `back_of` comes back where that is not 0; the rest are evicted.
aged_return after(int blocks, int back_of) {
  aged_return r;
  for (int i = 0; i < blocks; ++i)
    if (back_of != 0 && i % back_of == 0)
      r.came_back();
    else
      r.evicted();
  return r;
}

}  // namespace

TEST_CASE("all that has aged is worth writing before anything was evicted, and while nothing comes back") {
  CHECK(aged_return().worth_writing(100) == 100);
  CHECK(after(10'000, 0).worth_writing(100) == 100);
}

TEST_CASE("nothing is worth writing where all that has aged comes back") {
  CHECK(after(10'000, 1).worth_writing(100) == 0);
}

TEST_CASE(
    "so much is worth writing that a third more is written than is evicted where blocks come back from anywhere") {
  for (const int back_of : {2, 3, 10}) {
    const std::size_t queue = 10'000;
    const double back = 1.0 / back_of, evicted = 1 - back;
    const auto p = static_cast<double>(after(10'000, back_of).worth_writing(queue)) / queue;
    CHECK(evicted + p * back <= 1.35 * evicted);
    CHECK(evicted + p * back >= 1.05 * evicted);
  }
}

TEST_CASE("what has become of blocks long ago does not count") {
  aged_return r = after(10'000, 1);
  for (int i = 0; i < 2'000; ++i) r.evicted();
  CHECK(r.worth_writing(100) > 95);
}
