#include <catch2/catch.hpp>
#include <thread>

#include "storage/object/chunk_locks.hpp"
#include "storage/object/range_locks.hpp"
#include "support/node_fixture.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

using namespace ooc::storage;
using ooc::testing::let_pass;
using ooc::testing::never_within;
using ooc::testing::soon;

namespace {

chunk_locks::claim make_claim(std::vector<chunk_range> ranges, bool exclusive, int& resumed) {
  return {std::move(ranges), exclusive, [&resumed] { ++resumed; }};
}

/// The locks of a file as two processes have them: each has opened it for itself.
struct two_processes {
  ooc::testing::temporary_folder folder;
  file_descriptor one = open(), two = open();
  range_locks a{one.get()}, b{two.get()};

  file_descriptor open() const {
    return file_descriptor(::open((folder.path() / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
};

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
  two_processes locks;
  range_locks &a = locks.a, &b = locks.b;
  std::atomic<bool> got{false};
  std::thread other;
  {
    range_locks::hold first;
    range_locks::hold joined;
    REQUIRE(a.lock_chunks({{0, 10}, {5000, 5001}}, first) == 0);
    REQUIRE(a.lock_chunks({{3, 4}}, joined) == 0);
    other = std::thread([&] {
      range_locks::hold h;
      b.lock_chunks({{4, 5}}, h);
      got = true;
    });
    range_locks::hold elsewhere;
    CHECK(b.lock_chunks({{1024, 1025}}, elsewhere) == 0);  // the next region
    CHECK(never_within(std::chrono::milliseconds(50), [&] { return got.load(); }));
  }
  other.join();
  CHECK(got);
  range_locks::hold whole;
  CHECK(b.lock_object(whole) == 0);
}

TEST_CASE("a lock that another process wants is not joined for ever") {
  two_processes locks;
  range_locks &a = locks.a, &b = locks.b;
  std::atomic<bool> stop{false};
  std::atomic<int> holds{0};
  // Two threads whose holds overlap: without fairness the lock is never dropped.
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t)
    busy.emplace_back([&, t] {
      let_pass(std::chrono::milliseconds(5 * t));  // out of step with the other
      while (!stop) {
        range_locks::hold h;
        a.lock_chunks({{0, 1}}, h);
        ++holds;
        let_pass(std::chrono::milliseconds(10));  // in which the other comes
      }
    });
  CHECK(soon([&] { return holds >= 4; }));
  for (int i = 0; i < 3; ++i) {
    range_locks::hold h;
    CHECK(b.lock_chunks({{0, 1}}, h) == 0);
  }
  {
    range_locks::hold whole;
    CHECK(b.lock_object(whole) == 0);
  }
  stop = true;
  for (std::thread& t : busy) t.join();
}
