// When a sweep repeats, and when it does so no more.

#include "runtime/policy/repeated_sweep.hpp"

#include <catch2/catch.hpp>

using namespace ooc::detail;

namespace {

constexpr block_index blocks = 1000, worth_it = 500;

/// A program that runs for as long between any two blocks.
struct program {
  repeated_sweep sweep;
  std::uint64_t ran_ns = 0;

  void touch(block_index b, std::uint64_t ns = 1000) { sweep.came_in(b, blocks, worth_it, ran_ns += ns); }
  void pass(block_index first, block_index count, std::uint64_t ns = 1000) {
    for (block_index b = first; b < first + count; ++b) touch(b, ns);
  }
  /// One that was none: what was let go was needed.
  void end_a_repetition() {
    for (int k = 0; k < 2; ++k) pass(0, 100);
    touch(0);
    CHECK(!sweep.repeats());
  }
};

}  // namespace

TEST_CASE("a sweep repeats once a pass has gone by and another begins") {
  program p;
  p.pass(0, 100);
  CHECK(!p.sweep.repeats());
  p.touch(0);
  CHECK(p.sweep.repeats());
}

TEST_CASE("passes of other lengths, where several are asked for, or from other blocks, are no repetition") {
  program p;
  p.end_a_repetition();
  for (const block_index count : {100, 50, 100, 30, 100}) p.pass(0, count);
  p.touch(0);
  CHECK(!p.sweep.repeats());
  program q;
  for (const block_index first : {0, 100, 200, 300, 400}) q.pass(first, 100);
  CHECK(!q.sweep.repeats());
}

TEST_CASE("passes over more than is worth keeping some of do not repeat") {
  program p;
  for (int k = 0; k < 20; ++k) p.pass(0, worth_it + 1);
  CHECK(!p.sweep.repeats());
}

TEST_CASE("a sweep that is helped goes on to repeat: a pass takes longer than as many blocks take to come in") {
  program p;
  p.pass(0, 100);
  p.touch(0);
  REQUIRE(p.sweep.repeats());
  for (int k = 0; k < 20; ++k) {
    p.pass(0, 60, 1700);  // the others are in memory
    CHECK(p.sweep.repeats());
  }
}

TEST_CASE("a sweep that is helped goes on to repeat though the first pass took longer, as it filled the array") {
  program p;
  p.pass(0, 100, 5000);
  p.touch(0);
  REQUIRE(p.sweep.repeats());
  for (int k = 0; k < 20; ++k) {
    p.pass(0, 60, 1700);
    CHECK(p.sweep.repeats());
  }
}

TEST_CASE("two sweeps at a distance whose blocks come in twice in a pass do not repeat") {
  program p;
  p.pass(0, 100);
  p.touch(0);
  REQUIRE(p.sweep.repeats());
  for (block_index b = 8; b < 100 && p.sweep.repeats(); ++b) {
    p.touch(b, 500);
    p.touch(b - 8, 500);
  }
  CHECK(!p.sweep.repeats());
}

TEST_CASE("a sweep that is helped goes on to repeat after one that was not") {
  program p;
  p.end_a_repetition();
  for (block_index b = 1; !p.sweep.repeats(); b = (b + 1) % 100) p.touch(b);
  for (int k = 0; k < 20; ++k) {
    p.pass(0, 60, 1700);
    CHECK(p.sweep.repeats());
  }
}

TEST_CASE("a sweep that is not helped repeats no more, and has to for four times as long the next time") {
  program p;
  p.end_a_repetition();
  int passes = 0;
  for (; passes < 20 && !p.sweep.repeats(); ++passes) p.pass(0, 100);
  CHECK(passes >= 4);
  CHECK(passes <= 6);
}

TEST_CASE("a program that turns to other blocks repeats no more soon, and may repeat as before") {
  program p;
  p.pass(0, 100);
  p.pass(0, 40, 1700);
  REQUIRE(p.sweep.repeats());
  p.pass(500, 15);
  CHECK(!p.sweep.repeats());
  for (int k = 0; k < 2; ++k) p.pass(500, 100);
  p.touch(500);
  CHECK(p.sweep.repeats());
}
