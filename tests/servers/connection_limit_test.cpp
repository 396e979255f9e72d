// How many connections a server takes where its command line does not say.
#include "daemon/connection_limit.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>

TEST_CASE("a server takes 4096 connections, or half of the files that it may have open, or what is said") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = std::min<rlim_t>(64, before.rlim_max);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  CHECK(ooc::servers::connection_limit(7) == 7);
  rlimit after{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
  const rlim_t half = before.rlim_max == RLIM_INFINITY ? 4096 : before.rlim_max / 2;
  CHECK(ooc::servers::connection_limit(0) == std::min<rlim_t>(4096, half));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}
