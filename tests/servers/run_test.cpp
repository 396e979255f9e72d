// The life of a server's process.
#include "daemon/run.hpp"

#include <catch2/catch.hpp>
#include <csignal>

using namespace ooc::servers;

TEST_CASE("a signal that comes while a server starts ends it as one that comes later") {
  const unsigned threads = GENERATE(1u, 3u);
  server_loop loop(threads);
  REQUIRE(std::raise(SIGTERM) == 0);
  int stopped = 0;
  loop.run([&] { ++stopped; });
  CHECK(stopped == 1);
}
