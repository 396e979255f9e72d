#include "runtime/policy/segment_history.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "runtime/policy/write_history.hpp"

using namespace ooc::detail;
using ooc::access_pattern;

namespace {

constexpr std::uint64_t grain = 4096;

/// A walk down column `at` of a matrix with rows of `pitch` bytes; the last answer.
segment_history::sweep walk(segment_history& h, std::uint64_t pitch, std::uint64_t rows, std::uint64_t at,
                            std::vector<block_index>& wanted) {
  segment_history::sweep s;
  for (std::uint64_t i = 0; i < rows; ++i) s = h.follow_grains(i * pitch + at, rows * pitch, grain, 64, false, wanted);
  return s;
}

}  // namespace

TEST_CASE("a walk down a column is told from a run over grains, and neither from a touch that belongs to none") {
  segment_history h;
  std::vector<block_index> wanted;
  CHECK(h.follow_grains(40 * grain, 1 << 24, grain, 64, true, wanted).step == 0);
  const auto down = walk(h, 8 * grain, 8, 0, wanted);
  CHECK(down.walks);
  CHECK_FALSE(down.runs);
  CHECK(down.step == 8 * grain);
  segment_history other;
  segment_history::sweep run;
  for (std::uint64_t i = 0; i < 20; ++i) run = other.follow_grains(i * grain, 1 << 24, grain, 64, true, wanted);
  CHECK(run.runs);
  CHECK_FALSE(run.walks);
}

TEST_CASE("grains are wanted by their numbers, each once, a few where what was read ahead was for nothing") {
  segment_history h;
  std::vector<block_index> wanted;
  walk(h, 8 * grain, 16, 0, wanted);
  REQUIRE_FALSE(wanted.empty());
  for (const block_index b : wanted) CHECK(b % 8 == 0);
  for (int i = 0; i < 100; ++i) h.wasted({});
  wanted.clear();
  for (std::uint64_t i = 40; i < 60; ++i) {
    wanted.clear();
    h.follow_grains(i * 3 * grain, 1 << 24, grain, 64, true, wanted);
  }
  CHECK(wanted.size() <= 2);
}

TEST_CASE("blocks come whole where the program says that it sweeps, and by grains where it says that it does not") {
  segment_history h;
  h.advise(access_pattern::sequential);
  CHECK_FALSE(h.comes_in_grains(5, false));
  h.advise(access_pattern::random);
  CHECK(h.comes_in_grains(5, true));
  h.advise(access_pattern::automatic);
  CHECK_FALSE(h.comes_in_grains(5, true));  // all of it fits in memory
  CHECK(h.comes_in_grains(5, false));
}

TEST_CASE("a block that a sweep is about to come to is not brought in by grains") {
  segment_history h;
  std::vector<block_index> wanted;
  for (block_index b = 0; b < 4; ++b) h.follow(b, 100, 8, {}, wanted);
  CHECK_FALSE(h.comes_in_grains(4, false));
  CHECK(h.comes_in_grains(40, false));
}

TEST_CASE("where a sweep repeats, the block that it has left is not wanted soon, but for those of one instruction") {
  segment_history h;
  std::uint64_t ran = 0;
  for (unsigned pass = 0; pass <= policy_numbers::now.passes_alike; ++pass)
    for (block_index b = 0; b < 20; ++b) {
      const auto gone = h.not_wanted_soon(b, 20, 60, ran += 1000);
      if (pass < policy_numbers::now.passes_alike)
        CHECK_FALSE(gone);
      else
        CHECK(gone == (b + 20 - segment_history::in_use) % 20);
    }
  CHECK_FALSE(h.not_wanted_soon(25, 20, 60, ran));  // the segment has become shorter
}

TEST_CASE("blocks one after the other that are hardly touched are not followed until there was time to touch them") {
  segment_history h;
  std::vector<block_index> wanted;
  std::uint64_t ran = 0;
  const auto comes_to = [&](block_index b, std::uint64_t ns) {
    wanted.clear();
    h.mapped_whole(2 << 20, ran += ns, true);
    h.follow(b, 1000, 4, {}, wanted);
    return wanted.size();
  };
  for (block_index b = 0; b < 20; ++b) comes_to(b, 400'000);
  CHECK_FALSE(wanted.empty());
  for (block_index b = 20; b < 40; ++b) comes_to(b, 100);
  CHECK(wanted.empty());
  CHECK(h.comes_in_grains(40, false));
  for (block_index b = 40; b < 44; ++b) comes_to(b, 400'000);
  CHECK_FALSE(wanted.empty());
  h.advise(access_pattern::sequential);
  for (block_index b = 44; b < 64; ++b) comes_to(b, 100);
  CHECK_FALSE(wanted.empty());
}

TEST_CASE("where read-ahead does not pay, only long sweeps over blocks are read ahead, until it pays again") {
  segment_history h;
  std::vector<block_index> wanted;
  const auto comes_to = [&](block_index b) {
    wanted.clear();
    h.follow(b, 1000, 4, {}, wanted);
    return !wanted.empty();
  };
  const block_past ahead;
  comes_to(100);
  CHECK(comes_to(101));
  for (int i = 0; i < 100; ++i) h.wasted(ahead);
  comes_to(300);
  CHECK_FALSE(comes_to(301));  // any two neighbours
  block_index b = 302;
  while (b < 340 && !comes_to(b)) ++b;
  CHECK(b >= 312);
  CHECK(b < 320);
  for (int i = 0; i < 200; ++i) h.used(ahead);
  comes_to(600);
  CHECK(comes_to(601));
}

TEST_CASE("fewer blocks are written ahead of their eviction where those that have aged come back") {
  segment_history h;
  CHECK(h.worth_writing(100) == 100);
  block_past p;
  for (int i = 0; i < 30; ++i) {
    h.evicted();
    h.touched(p, false);
  }
  CHECK(h.worth_writing(100) == 100);
  for (int i = 0; i < 30; ++i) h.touched(p, true);
  CHECK(h.worth_writing(100) < 50);
}

TEST_CASE("a program that has no time to touch what it reads is told so once") {
  segment_history h;
  bool found = false;
  for (int i = 0; i < 400; ++i) found |= h.mapped_whole(2 << 20, 100, true);
  CHECK(found);
  CHECK(h.take_hint("plate").find("'plate'") != std::string::npos);
  CHECK(h.take_hint("plate").empty());
}

TEST_CASE("a sweep of writes is written behind until it comes back to what it has left") {
  write_history w;
  CHECK(w.to_clean_behind(10, 1, 100) == 8);
  CHECK(w.to_clean_behind(10, -1, 100) == 12);
  CHECK_FALSE(w.to_clean_behind(1, 1, 100));
  CHECK_FALSE(w.to_clean_behind(99, -1, 100));
  for (int i = 0; i < 20; ++i) {
    w.cleaned_behind_sweep();
    block_past p{.swept = true};
    w.first_write(p);
    CHECK_FALSE(p.swept);
    w.first_write(p);  // counts once
  }
  CHECK_FALSE(w.to_clean_behind(10, 1, 100));
}

TEST_CASE("grains come in writable where those before were written, until a write-back") {
  write_history w;
  for (int i = 0; i < 200; ++i) {
    block_past p;
    if (!w.writable_on_arrival(p)) w.first_write(p);
  }
  int writable = 0;
  for (int i = 0; i < 16; ++i) {
    block_past p;
    writable += w.writable_on_arrival(p);
    if (p.watched) w.first_write(p);
  }
  CHECK(writable == 14);  // one in eight is looked at
  w.written_back();
  block_past p;
  CHECK_FALSE(w.writable_on_arrival(p));
}
