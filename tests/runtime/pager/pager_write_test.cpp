// How what was modified gets to the store.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/pager_words.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::test::small_block;
using ooc::test::words;
using ooc::test::words_per_block;
using ooc::testing::let_pass;
using ooc::testing::mib;
using ooc::testing::never_within;
using ooc::testing::soon;

namespace {
// In which the service thread would write what it is to leave alone.
constexpr std::chrono::milliseconds while_written_behind(50);
}  // namespace

TEST_CASE("a sweep that writes more than fits is written from its beginning on") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  const auto write = [&](std::size_t b) { words(s)[b * words_per_block] = b + 1; };
  std::size_t first = 0, step = 1;
  SECTION("forward") {}
  SECTION("backward") {
    first = 255;
    step = static_cast<std::size_t>(-1);
  }
  for (std::size_t k = 0; k < 32; ++k) write(first + k * step);  // half of the budget
  CHECK(soon([&] { return source.stores > 16; }));
  CHECK(source.stores <= 30);  // those that the sweep is near to are left alone
  for (std::size_t k = 32; k < 256; ++k) write(first + k * step);
  CHECK_FALSE(s.writeback());
  CHECK(source.stores == 256);  // each of them once
  for (std::size_t b = 0; b < 256; ++b) REQUIRE(source.as<std::uint64_t>()[b * words_per_block] == b + 1);
}

TEST_CASE("panels that are filled and then changed again are hardly written more than once") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  const std::size_t panel = GENERATE(std::size_t{4}, std::size_t{16});
  for (std::size_t first = 0; first < 256; first += panel)
    for (int pass = 0; pass < 4; ++pass)
      for (std::size_t b = first; b < first + panel; ++b) {
        words(s)[b * words_per_block] += b;
        // As long as computing takes, so that the sweep is seen.
        let_pass(std::chrono::microseconds(100));
      }
  CHECK_FALSE(s.writeback());
  CHECK(source.stores <= 256 + 256 / 8 + 16);
  for (std::size_t b = 0; b < 256; ++b) REQUIRE(source.as<std::uint64_t>()[b * words_per_block] == 4 * b);
}

TEST_CASE("what is written stays in memory where the array, or this rank's part of it, fits") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 2);
  segment_options o{.name = "a", .block_bytes = small_block, .blocks = 256};
  SECTION("the array") { o.blocks = 48; }
  SECTION("the part") { o.part.near = {0, 48}; }
  segment s(rt.pager(), o, source);
  for (std::size_t b = 0; b < 32; ++b) words(s)[b * words_per_block] = b;
  CHECK(never_within(while_written_behind, [&] { return source.stores != 0; }));
}

TEST_CASE("a sweep is written from its beginning on where two arrays do not fit together") {
  runtime rt({.memory = 4 * mib});
  memory_source source(48, small_block, 2), other(48, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 48}, source);
  const segment read(rt.pager(), {.name = "b", .block_bytes = small_block, .blocks = 48}, other);
  for (std::size_t b = 0; b < 32; ++b) words(s)[b * words_per_block] = b;
  CHECK(soon([&] { return source.stores > 16; }));
}

TEST_CASE("a sweep is written from its beginning on where blocks fit, and not with their twins") {
  runtime rt({.memory = 4 * mib});
  memory_source source(48, small_block, 2);
  segment_options o{.name = "a", .block_bytes = small_block, .blocks = 48, .shared = true};
  bool all_own = false;
  SECTION("nobody owns a block") {}
  SECTION("all are this rank's own") { all_own = true; }
  if (all_own) o.part.own = every_block;
  segment s(rt.pager(), o, source);
  for (std::size_t b = 0; b < 24; ++b) words(s)[b * words_per_block] = b + 1;
  if (all_own) {
    CHECK(never_within(while_written_behind, [&] { return source.stores != 0; }));
  } else {
    CHECK(soon([&] { return source.stores > 8; }));
  }
}

TEST_CASE("what is written to an array that is used at random stays in memory") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  s.advise(access_pattern::random);
  for (std::size_t b = 0; b < 32; ++b) words(s)[b * words_per_block] = b;
  CHECK(never_within(while_written_behind, [&] { return source.stores != 0; }));
}

TEST_CASE("what is written to more blocks than fit comes back, and reaches the store by writeback") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) words(s)[i] = i * 3;
  bool same = true;
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) same &= words(s)[i] == i * 3;
  CHECK(same);
  CHECK_FALSE(s.writeback());
  CHECK(s.dirty_blocks() == 0);
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) same &= source.as<std::uint64_t>()[i] == i * 3;
  CHECK(same);
  CHECK(rt.stats().resident_bytes <= 1 * mib);
}

TEST_CASE("writing back some blocks tries those again whose write-behind failed") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  source.fail_stores = 3;
  for (std::size_t b = 0; b < 32; ++b) words(s)[b * words_per_block] = b + 1;
  REQUIRE(soon([&] { return source.refused().size() == 3; }));
  const block_range some{31, 32};
  CHECK_FALSE(s.writeback({&some, 1}));
  for (const block_index b : source.refused()) CHECK(source.as<std::uint64_t>()[b * words_per_block] == b + 1);
}

TEST_CASE("a block whose write-behind failed is kept and written again") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  source.fail_stores = 3;
  for (std::size_t b = 0; b < 64; ++b) words(s)[b * words_per_block] = b + 1;
  CHECK_FALSE(s.writeback());
  for (std::size_t b = 0; b < 64; ++b) REQUIRE(source.as<std::uint64_t>()[b * words_per_block] == b + 1);
}

TEST_CASE("a pinned block can be given to the kernel, stays dirty, and is written from a copy") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  const block_range one[] = {{3, 4}};
  REQUIRE_FALSE(s.pin(one, access_mode::write));
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  const std::uint64_t value = 99;
  REQUIRE(::write(fds[1], &value, 8) == 8);
  for (std::size_t b = 8; b < 64; ++b) words(s)[b * words_per_block] = b;  // presses it hard
  CHECK(::read(fds[0], &words(s)[3 * words_per_block], 8) == 8);
  CHECK_FALSE(s.writeback());
  CHECK(source.as<std::uint64_t>()[3 * words_per_block] == 99);
  CHECK(s.dirty_blocks() == 1);
  CHECK(s.invalidate(true) == segment::invalidated::pinned);
  s.unpin(one, access_mode::write);
  CHECK_FALSE(s.writeback());
  CHECK(s.dirty_blocks() == 0);
  const block_range too_many[] = {{0, 16}};
  const failure f = s.pin(too_many, access_mode::read);
  CHECK(f.code == errc::budget_too_small);
  ::close(fds[0]);
  ::close(fds[1]);
}

namespace {
// Holds one store back until it is told to let go.
class held_store : public memory_source {
 public:
  using memory_source::memory_source;
  void store(block_index b, const std::byte* frame, completion done) override {
    if (!hold.exchange(false)) return memory_source::store(b, frame, std::move(done));
    held = std::thread([this, b, frame, done = std::move(done)]() mutable {
      holding = true;
      holding.notify_all();
      let_go.wait(false);
      memory_source::store(b, frame, std::move(done));
    });
  }
  std::atomic<bool> hold{false}, holding{false}, let_go{false};
  std::thread held;
};
}  // namespace

TEST_CASE("the copy of a pinned block does not overtake what is written after the unpin") {
  runtime rt({.memory = 1 * mib});
  held_store source(8, small_block);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  const block_range one[] = {{0, 1}};
  REQUIRE_FALSE(s.pin(one, access_mode::write));
  words(s)[0] = 1;
  source.hold = true;
  failure first, second;
  std::thread early([&] { first = s.writeback(); });
  source.holding.wait(false);
  s.unpin(one, access_mode::write);
  words(s)[0] = 2;
  std::atomic<bool> overtaken{false};
  std::thread late([&] {
    second = s.writeback();
    overtaken = true;
  });
  CHECK(never_within(std::chrono::milliseconds(50), [&] { return overtaken.load(); }));
  source.let_go = true;
  source.let_go.notify_all();
  early.join();
  late.join();
  source.held.join();
  CHECK_FALSE(first);
  CHECK_FALSE(second);
  CHECK(source.as<std::uint64_t>()[0] == 2);
  CHECK(s.dirty_blocks() == 0);
  CHECK(s.invalidate(false) == segment::invalidated::done);
  CHECK(words(s)[0] == 2);
}
