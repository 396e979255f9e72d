// The shared pointer of ranks on several hosts, without MPI.
#include "mpiio/shared_pointer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::mpiio;
using namespace ooc::testing;

namespace {

struct two_hosts {
  temporary_folder folder;
  std::string url = "local:" + (folder / "n0").string();
  store a = store::open(url), b = store::open(url);
  shared_pointer first{a.core(), "runs/f", 7}, second{b.core(), "runs/f", 7};

  two_hosts() { a.core()->metadata().mkdir("runs", 0755, false); }
  std::size_t files() { return a.core()->metadata().list("runs").size(); }
};

}  // namespace

TEST_CASE("each step of a shared pointer is taken once, whoever takes it") {
  two_hosts h;
  std::vector<std::uint64_t> mine, others;
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) others.push_back(h.second.advance(3));
  });
  for (int i = 0; i < 50; ++i) mine.push_back(h.first.advance(3));
  other.join();
  mine.insert(mine.end(), others.begin(), others.end());
  std::sort(mine.begin(), mine.end());
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(mine[i] == 3 * i);
  CHECK(h.second.position() == 300);
}

TEST_CASE("a shared pointer that nobody has moved takes no file, and one that is given up leaves none") {
  two_hosts h;
  CHECK(h.first.position() == 0);
  h.first.move_to(0);
  h.first.remove();
  CHECK(h.files() == 0);
  h.first.move_to(100);
  CHECK(h.second.advance(5) == 100);
  CHECK(h.files() == 1);
  h.second.move_to(0);
  CHECK(h.first.position() == 0);
  h.first.remove();
  CHECK(h.files() == 0);
}

TEST_CASE("two openings of a file have shared pointers of their own") {
  two_hosts h;
  shared_pointer another(h.a.core(), "runs/f", 8);
  CHECK(h.first.advance(10) == 0);
  CHECK(another.advance(20) == 0);
  CHECK(h.second.position() == 10);
}

TEST_CASE("a shared pointer does not pass the greatest position of a file, and stays where it was") {
  two_hosts h;
  h.first.move_to(std::uint64_t{1} << 62);
  CHECK_THROWS_WITH(h.first.advance(std::uint64_t{1} << 62), Catch::Contains("2^63 - 1"));
  CHECK(h.second.position() == std::uint64_t{1} << 62);
}
