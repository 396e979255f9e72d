// The life of a server's process.
#include "daemon/run.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

#include "support/small_space.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc::servers;
using namespace ooc::testing;

TEST_CASE("a signal that comes while a server starts ends it as one that comes later") {
  const unsigned threads = GENERATE(1u, 3u);
  server_loop loop(threads);
  REQUIRE(std::raise(SIGTERM) == 0);
  int stopped = 0;
  loop.run([&] { ++stopped; });
  CHECK(stopped == 1);
}

TEST_CASE("a limit on file sizes does not end a server, but fails what writes past it") {
  const temporary_folder folder;
  const auto write_past_it = [&] {
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const ooc::storage::file_descriptor fd(::open((folder.path() / "f").c_str(), O_WRONLY | O_CREAT, 0600));
    return ::pwrite(fd.get(), "x", 1, 4096) == -1 && errno == EFBIG ? 0 : 2;
  };
  CHECK(in_child([&] { return run_main("test", write_past_it); }) == 0);
}
