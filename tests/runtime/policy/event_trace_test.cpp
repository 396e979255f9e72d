#include "runtime/policy/event_trace.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/error.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc::detail;

namespace {

trace_event missed(std::uint64_t block) { return {block, 8, 3, traced::missed, 1}; }
void note(event_trace& t, const trace_event& e) { t.note(e.what, e.segment, e.block, e.amount, e.detail); }

std::string file_in(const ooc::testing::temporary_folder& dir, const char* name) {
  return (dir.path() / name).string();
}

/// Returns the text that goes to standard error meanwhile, by way of a file.
template <class F>
std::string said_by(F f, const std::string& file) {
  const int before = ::dup(2), to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(to, 2);
  f();
  ::dup2(before, 2);
  ::close(before);
  ::close(to);
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a trace that was recorded reads as it was noted, behind what the budget was") {
  const ooc::testing::temporary_folder dir;
  const std::string file = file_in(dir, "t");
  {
    event_trace t;
    note(t, missed(1));  // nothing is recorded yet
    CHECK_FALSE(t.on());
    CHECK(t.number_of_next() == 0);
    t.record(file, 1 << 20);
    CHECK(t.number_of_next() == 1);
    CHECK(t.number_of_next() == 2);
    for (std::uint64_t b = 0; b < 10'000; ++b) note(t, missed(b));
    t.drain();
    note(t, {7, 0, 3, traced::evicted});
  }
  const std::vector<trace_event> read = read_trace(file);
  REQUIRE(read.size() == 10'002);
  CHECK(read[0] == trace_event{1 << 20, 0, 0, traced::began});
  for (std::uint64_t b = 0; b < 10'000; ++b) REQUIRE(read[1 + b] == missed(b));
  CHECK(read.back().what == traced::evicted);
}

TEST_CASE("events that found the ring full are counted, and the file says where they are missing") {
  const ooc::testing::temporary_folder dir;
  const std::string file = file_in(dir, "t");
  constexpr std::uint64_t noted = 100'000;
  {
    event_trace t;
    t.record(file, 0);
    for (std::uint64_t b = 0; b < noted; ++b) note(t, missed(b));
    CHECK(t.fills());
    t.drain();
    CHECK_FALSE(t.fills());
    note(t, missed(noted));
  }
  std::uint64_t lost = 0, there = 0;
  for (const trace_event& e : read_trace(file)) {
    if (e.what == traced::lost) lost += e.block;
    if (e.what == traced::missed) ++there;
  }
  CHECK(lost > 0);
  CHECK(lost + there == noted + 1);
}

TEST_CASE("a recording that cannot be written any more ends there, and standard error is told at the end") {
  const ooc::testing::temporary_folder dir;
  const std::string file = file_in(dir, "t");
  constexpr std::uint64_t room = 512 * sizeof(trace_event);  // the first is taken by the header
  event_trace t;
  t.record(file, 0);
  {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit small{room, before.rlim_max};
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (std::uint64_t b = 0; b < 1000; ++b) note(t, missed(b));
    t.drain();
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    ::signal(SIGXFSZ, handler);
  }
  note(t, missed(1000));
  CHECK_THAT(said_by([&] { t.finish(); }, file_in(dir, "said")), Catch::Contains("written to its end: File too large"));
  CHECK(read_trace(file).size() == 511);
}

TEST_CASE("a ring hands over what several threads put into it, of each in its order") {
  trace_ring ring(256);
  constexpr std::uint64_t each = 20'000;
  std::vector<std::thread> all;
  for (std::uint16_t k = 0; k < 3; ++k)
    all.emplace_back([&ring, k] {
      for (std::uint64_t i = 0; i < each; ++i)
        while (!ring.put({i, 0, k, traced::ran})) std::this_thread::yield();
    });
  std::vector<std::uint64_t> next(3, 0);
  std::vector<trace_event> some(64);
  for (std::uint64_t taken = 0; taken < 3 * each;) {
    const std::size_t n = ring.take(some);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(some[i].block == next[some[i].segment]++);
    taken += n;
    if (n == 0) std::this_thread::yield();
  }
  for (std::thread& t : all) t.join();
}

TEST_CASE("a name with %p is that of the process, and a place where no file can be is refused") {
  const ooc::testing::temporary_folder dir;
  event_trace t;
  t.record(file_in(dir, "t.%p"), 0);
  CHECK(std::filesystem::exists(file_in(dir, ("t." + std::to_string(::getpid())).c_str())));
  event_trace other;
  CHECK_THROWS_AS(other.record(file_in(dir, "none/t"), 0), ooc::usage_error);
}

TEST_CASE("a file that is no trace, of another version or cut off is refused") {
  const ooc::testing::temporary_folder dir;
  const std::string file = file_in(dir, "t");
  CHECK_THROWS_AS(read_trace(file), ooc::usage_error);
  std::ofstream(file) << "no trace at all, but long enough";
  CHECK_THROWS_AS(read_trace(file), ooc::usage_error);
  {
    event_trace t;
    t.record(file, 0);
    note(t, missed(1));
  }
  CHECK(read_trace(file).size() == 2);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  CHECK_THROWS_AS(read_trace(file), ooc::usage_error);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put(9);
  CHECK_THROWS_WITH(read_trace(file), Catch::Contains("version 9"));
}
