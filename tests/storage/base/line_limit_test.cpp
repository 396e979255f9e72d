// How many lines a reader is given.
#include "storage/base/line_limit.hpp"

#include <catch2/catch.hpp>

using ooc::storage::line_limit;
using namespace std::chrono_literals;
using place = line_limit::place;

TEST_CASE(
    "of many lines the first ones are shown, the last of which says that others are left out, and later ones again") {
  line_limit limit(3, 10s);
  const auto begin = line_limit::clock::time_point() + 1h;
  CHECK(limit.next(begin) == place::shown);
  CHECK(limit.next(begin + 1s) == place::shown);
  CHECK(limit.next(begin + 2s) == place::last_shown);
  CHECK(limit.next(begin + 2s) == place::left_out);
  CHECK(limit.next(begin + 9s) == place::left_out);
  CHECK(limit.next(begin + 10s) == place::shown);
}
