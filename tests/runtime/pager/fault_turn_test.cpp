#include "runtime/pager/fault_turn.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

#include "support/random_seed.hpp"
#include "support/rounds.hpp"

namespace turns {
namespace {

using namespace ooc::detail;

constexpr std::uint64_t long_time = 100'000'000'000;  // ns

int blocks[4];

/// A thread that faults; the histories of true ones have their thread's id.
fault_history history_of(std::uint32_t thread) {
  fault_history h;
  h.thread = thread;
  return h;
}

void take(fault_turn& turn, fault_history& h) {
  for (unsigned i = 0; i <= fault_turn::take_after; ++i) {
    turn.enter(h, &blocks[0], [] {});
    turn.leave(h);
  }
}

TEST_CASE("who faults again and again on one block takes the turn, and others wait until it moves on", "[pager]") {
  fault_turn turn(long_time);
  fault_history a = history_of(1), b = history_of(2);
  take(turn, a);
  std::atomic<bool> waits{false}, came_in{false};
  std::thread other([&] {
    turn.enter(b, &blocks[1], [&] {
      waits = true;
      waits.notify_all();
    });
    came_in = true;
    turn.leave(b);
  });
  waits.wait(false);
  turn.enter(a, &blocks[0], [] {});
  turn.leave(a);
  CHECK_FALSE(came_in);
  turn.enter(a, &blocks[2], [] {});  // another block
  turn.leave(a);
  other.join();
  CHECK(came_in);
}

TEST_CASE("a turn whose holder faults no more ends", "[pager]") {
  fault_turn turn(1000);
  fault_history a = history_of(1), b = history_of(2);
  take(turn, a);
  turn.enter(b, &blocks[1], [] {});
  turn.leave(b);
  take(turn, b);
  turn.enter(a, &blocks[1], [] {});
  turn.leave(a);
}

TEST_CASE("a turn does not end while its holder is being served", "[pager]") {
  fault_turn turn(1000);
  fault_history a = history_of(1), b = history_of(2);
  take(turn, a);
  turn.enter(a, &blocks[0], [] {});
  std::atomic<int> waits{0};
  std::atomic<bool> came_in{false};
  std::thread other([&] {
    turn.enter(b, &blocks[1], [&] { ++waits, waits.notify_all(); });
    came_in = true;
  });
  for (int seen = 0; seen < 20; seen = waits) waits.wait(seen);  // each a thousand of its 1 us
  CHECK_FALSE(came_in);
  turn.leave(a);
  other.join();
  CHECK(came_in);
}

// A holder that is late to say that it faults again has lost its turn, or keeps it: whoever stops, others go on.
TEST_CASE("threads that end each other's turns all end", "[pager]") {
  const std::uint64_t seed = ooc::testing::random_seed("fault_turn");
  for (int round = 0; round < ooc::testing::rounds(200); ++round) {
    fault_turn turn(0);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 1; t <= 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(seed) + t + 10 * static_cast<unsigned>(round));
        fault_history h = history_of(t);
        for (unsigned n = random() % 2000; n > 0; --n) {
          turn.enter(h, &blocks[random() % 64 == 0 ? t - 1 : 0], [] {});
          turn.leave(h);
        }
      });
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace turns
