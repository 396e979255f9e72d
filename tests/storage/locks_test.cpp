#include <catch2/catch.hpp>
#include <thread>

#include "storage/chunk_locks.hpp"
#include "storage/node_fixture.hpp"
#include "storage/region_locks.hpp"

using namespace ooc::storage;

namespace {

chunk_locks::claim make_claim(std::vector<chunk_range> ranges, bool exclusive, int& resumed) {
  return {std::move(ranges), exclusive, [&resumed] { ++resumed; }};
}

}  // namespace

TEST_CASE("claims that share no chunk are granted together") {
  chunk_locks locks;
  int resumed = 0;
  auto a = make_claim({{0, 4}, {8, 12}}, true, resumed);
  auto b = make_claim({{4, 8}, {12, 13}}, true, resumed);
  CHECK(locks.lock(a));
  CHECK(locks.lock(b));
  locks.unlock(a);
  locks.unlock(b);
  CHECK(resumed == 0);
}

TEST_CASE("a claim in conflict is parked and resumed in its turn") {
  chunk_locks locks;
  int first = 0;
  int second = 0;
  int third = 0;
  auto a = make_claim({{0, 10}}, true, first);
  auto b = make_claim({{5, 6}}, true, second);
  auto c = make_claim({{5, 20}}, true, third);
  CHECK(locks.lock(a));
  CHECK_FALSE(locks.lock(b));
  CHECK_FALSE(locks.lock(c));
  locks.unlock(a);
  CHECK(second == 1);
  CHECK(third == 0);
  locks.unlock(b);
  CHECK(third == 1);
  locks.unlock(c);
}

TEST_CASE("a claim does not overtake an earlier one that it conflicts with") {
  chunk_locks locks;
  int n = 0;
  int all = 0;
  auto a = make_claim({{0, 1}}, true, n);
  auto whole = make_claim({all_chunks}, true, all);
  auto later = make_claim({{7, 8}}, true, n);
  CHECK(locks.lock(a));
  CHECK_FALSE(locks.lock(whole));
  CHECK_FALSE(locks.lock(later));
  locks.unlock(a);
  CHECK(all == 1);
  CHECK(n == 0);
  locks.unlock(whole);
  CHECK(n == 1);
  locks.unlock(later);
}

TEST_CASE("readers share chunks, writers do not") {
  chunk_locks locks;
  int n = 0;
  auto a = make_claim({{0, 9}}, false, n);
  auto b = make_claim({{3, 4}}, false, n);
  auto w = make_claim({{3, 4}}, true, n);
  CHECK(locks.lock(a));
  CHECK(locks.lock(b));
  CHECK_FALSE(locks.lock(w));
  locks.unlock(a);
  CHECK(n == 0);
  locks.unlock(b);
  CHECK(n == 1);
  locks.unlock(w);
}

TEST_CASE("region locks exclude another open file description and are shared within one") {
  ooc::testing::temporary_folder folder;
  const auto open = [&] {
    return file_descriptor(
        ::open((folder.path() / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  };
  const file_descriptor one = open();
  const file_descriptor two = open();
  region_locks a(one.get());
  region_locks b(two.get());
  std::atomic<bool> got{false};
  std::thread other;
  {
    region_locks::hold first;
    region_locks::hold joined;
    REQUIRE(a.lock_chunks({{0, 10}, {5000, 5001}}, first) == 0);
    REQUIRE(a.lock_chunks({{3, 4}}, joined) == 0);
    other = std::thread([&] {
      region_locks::hold h;
      b.lock_chunks({{4, 5}}, h);
      got = true;
    });
    region_locks::hold elsewhere;
    CHECK(b.lock_chunks({{1024, 1025}}, elsewhere) == 0);  // the next region
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_FALSE(got);
  }
  other.join();
  CHECK(got);
  region_locks::hold whole;
  CHECK(b.lock_share(whole) == 0);
}

TEST_CASE("a lock that another process wants is not joined for ever") {
  ooc::testing::temporary_folder folder;
  const auto open = [&] {
    return file_descriptor(
        ::open((folder.path() / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  };
  const file_descriptor one = open();
  const file_descriptor two = open();
  region_locks a(one.get());
  region_locks b(two.get());
  std::atomic<bool> stop{false};
  // Two threads whose holds overlap: without fairness the lock is never dropped.
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t)
    busy.emplace_back([&, t] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5 * t));
      while (!stop) {
        region_locks::hold h;
        a.lock_chunks({{0, 1}}, h);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (int i = 0; i < 3; ++i) {
    region_locks::hold h;
    CHECK(b.lock_chunks({{0, 1}}, h) == 0);
  }
  {
    region_locks::hold whole;
    CHECK(b.lock_share(whole) == 0);
  }
  stop = true;
  for (std::thread& t : busy) t.join();
}
