// Threads of algorithms where there is no memory to make them.  A program of its own, because it replaces operator new.
#include "runtime/algorithm/worker_threads.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <vector>

#include "runtime/algorithm/thread_team.hpp"

namespace {

/// Of this thread that still succeed; below 0: all.
thread_local int allocations_left = -1;

/// Memory for so many allocations while it lives.
struct little_memory {
  explicit little_memory(int allocations) { allocations_left = allocations; }
  ~little_memory() { allocations_left = -1; }
};

}  // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const p = std::malloc(bytes != 0 ? bytes : 1);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace ooc::detail;

TEST_CASE("where memory for threads runs out, those that there are do the work") {
  constexpr unsigned threads = 4;
  for (int allocations = 0; allocations <= 2 * static_cast<int>(threads); ++allocations) {
    CAPTURE(allocations);
    std::atomic<unsigned> working{0}, of_caller{0};
    {
      const little_memory until(allocations);
      run_on_threads(threads, [&](unsigned k) noexcept {
        ++working;
        if (k == 0) ++of_caller;
      });
    }
    CHECK(of_caller == 1);
    CHECK(working <= threads);
    if (allocations == 0) CHECK(working == 1);
  }
}

TEST_CASE("work that takes a second thread is not begun where there is no memory for one") {
  bool worked = false;
  const auto work = [&](unsigned) noexcept { worked = true; };
  const little_memory none(0);
  CHECK_THROWS_AS(run_on_threads(3, work, true), std::bad_alloc);
  CHECK_FALSE(worked);
}

TEST_CASE("a team of fewer threads than were asked for does all tasks") {
  for (int allocations = 0; allocations <= 8; ++allocations) {
    CAPTURE(allocations);
    std::vector<int> done(100);
    allocations_left = allocations;
    thread_team team(4);
    allocations_left = -1;
    CHECK(team.size() <= 4);
    team.run(done.size(), [&](std::size_t task) { done[task] = 1; });
    CHECK(std::count(done.begin(), done.end(), 1) == 100);
  }
}
