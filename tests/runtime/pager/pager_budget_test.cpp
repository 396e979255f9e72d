// The limits: of the budget, of single arrays, of the mappings that a process may have.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <thread>

#include "runtime/blocks/frame_pool.hpp"
#include "support/pager_words.hpp"
#include "support/pauses.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::test::small_block;
using ooc::test::words;
using ooc::test::words_per_block;
using ooc::testing::kib;
using ooc::testing::mib;
using ooc::testing::page_words;

namespace {

std::size_t mappings() {
  std::ifstream in("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

}  // namespace

TEST_CASE("an array with a limit of its own stays within it") {
  runtime rt({.memory = 4 * mib});
  memory_source source(64, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64, .max_resident = 5}, source);
  for (std::size_t b = 0; b < 64; ++b) {
    words(s)[b * words_per_block] = b;
    REQUIRE(rt.stats().resident_bytes <= 5 * small_block);
  }
  for (std::size_t b = 0; b < 64; ++b) REQUIRE(words(s)[b * words_per_block] == b);
}

TEST_CASE("a shared array with a limit of its own makes progress") {
  runtime rt({.memory = 4 * mib});
  memory_source source(64, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64, .max_resident = 4, .shared = true},
            source);
  for (std::size_t b = 0; b < 64; ++b) words(s)[b * words_per_block] = b + 1;
  CHECK_FALSE(s.writeback());
  for (std::size_t b = 0; b < 64; ++b) REQUIRE(source.as<std::uint64_t>()[b * words_per_block] == b + 1);
}

TEST_CASE("a write to a shared block that finds no room for its twin ends, and does not wait forever") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(2);
    ::alarm(60);
    runtime rt({.memory = 8 * page_bytes, .block = page_bytes});
    memory_source source(64, page_bytes, 1);
    source.fail_stores = 1000000;
    segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 64, .shared = true}, source);
    volatile std::uint64_t sink = 0;
    for (std::size_t b = 0; b < 64; ++b) {
      sink = sink + words(s)[b * page_words];
      words(s)[b * page_words] = b;
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == fatal_exit_status);
}

TEST_CASE("a pin that finds no room, as nothing can be written, fails, and the process goes on") {
  runtime rt({.memory = 16 * page_bytes, .block = page_bytes});
  memory_source source(64, page_bytes, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 64}, source);
  source.fail_stores = 1000000;
  std::size_t modified = 0;
  // As long as a touch finds a frame without a wait.
  for (; rt.stats().resident_bytes + page_bytes <= rt.stats().budget_bytes; ++modified)
    words(s)[modified * page_words] = modified + 1;
  const block_range four[] = {{56, 60}};
  const failure f = s.pin(four, access_mode::read);
  REQUIRE(f);
  CHECK(f.what.find("injected") != std::string::npos);
  source.fail_stores = 0;
  CHECK_FALSE(s.pin(four, access_mode::read));
  s.unpin(four, access_mode::read);
  CHECK_FALSE(s.writeback());
  for (std::size_t b = 0; b < modified; ++b) REQUIRE(source.as<std::uint64_t>()[b * page_words] == b + 1);
}

TEST_CASE("a store that fails is tried again for some seconds in which the program runs, and is not stopped") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(2);
    ::alarm(60);
    runtime rt({.memory = 8 * page_bytes, .block = page_bytes});
    memory_source source(64, page_bytes, 1);
    source.fail_stores = 1000000;
    segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 64}, source);
    std::thread stops([&source] {
      if (!testing::soon([&] { return !source.refused().empty(); })) ::_exit(1);
      testing::let_pass(std::chrono::milliseconds(200));  // a touch finds no frame by then
      ::kill(::getpid(), SIGSTOP);
      testing::let_pass(std::chrono::milliseconds(300));  // and then the store works again
      source.fail_stores = 0;
    });
    for (std::size_t b = 0; b < 64; ++b) words(s)[b * page_words] = b;
    stops.join();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  testing::let_pass(std::chrono::seconds(6));  // longer than it is tried
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("blocks of several sizes share one budget") {
  runtime rt({.memory = 4 * mib});
  memory_source small(256, page_bytes, 1), large(16, mib, 1);
  segment a(rt.pager(), {.name = "small", .block_bytes = page_bytes, .blocks = 256}, small);
  segment b(rt.pager(), {.name = "large", .block_bytes = mib, .blocks = 16}, large);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 256; ++i) a.base()[i * page_bytes] = static_cast<std::byte>(i + round);
    for (std::size_t i = 0; i < 16; ++i) b.base()[i << 20] = static_cast<std::byte>(i + round);
    for (std::size_t i = 0; i < 256; ++i) REQUIRE(a.base()[i * page_bytes] == static_cast<std::byte>(i + round));
    for (std::size_t i = 0; i < 16; ++i) REQUIRE(b.base()[i << 20] == static_cast<std::byte>(i + round));
    CHECK(rt.stats().resident_bytes <= 4 * mib);
  }
}

TEST_CASE("far more blocks than fit, touched once, leave a bounded number of mappings", "[megabytes]") {
  runtime rt({.memory = 4 * mib, .block = page_bytes});
  const std::size_t blocks = 400_MiB / page_bytes;  // all of which the source has in memory
  memory_source source(blocks, page_bytes);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = blocks}, source);
  const std::size_t before = mappings();
  volatile std::byte sink{};
  for (std::size_t b = 0; b < blocks; ++b) sink = s.base()[(b * 7919 % blocks) * page_bytes];
  (void)sink;
  CHECK(mappings() - before <= 4 * 1024 + 16);
}

TEST_CASE("more dirty blocks than the mappings of a process allow are written behind", "[megabytes]") {
  runtime rt({.memory = 256 * mib, .block = page_bytes});
  constexpr std::size_t blocks = 20000;
  memory_source source(blocks, page_bytes, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = blocks}, source);
  for (std::size_t b = 0; b < blocks; ++b) s.base()[b * page_bytes] = static_cast<std::byte>(b);
  bool same = true;
  for (std::size_t b = 0; b < blocks; ++b) same &= s.base()[b * page_bytes] == static_cast<std::byte>(b);
  CHECK(same);
}

TEST_CASE("block sizes together stay within the mappings of a process") {
  frame_pool pool(1_GiB);
  frame_class& small = pool.class_for(page_bytes);
  frame_class& large = pool.class_for(8192);
  std::vector<frame*> taken;
  while (frame* f = pool.take(small)) taken.push_back(f);
  for (std::size_t i = 0; i < 100; ++i) pool.give_back(taken[i]);
  for (std::size_t i = 0; i < 100; ++i) REQUIRE(pool.take(large));
  CHECK(pool.take(large) == nullptr);
  CHECK(pool.take(small) == nullptr);
}

TEST_CASE("pins of small blocks leave room for the large ones of other arrays") {
  runtime rt({.memory = 4 * mib});
  memory_source small(1024, page_bytes, 1), large(16, mib / 2, 1);
  segment a(rt.pager(), {.name = "small", .block_bytes = page_bytes, .blocks = 1024}, small);
  segment b(rt.pager(), {.name = "large", .block_bytes = mib / 2, .blocks = 16}, large);
  const block_range most[] = {{0, 900}};
  CHECK(a.pin(most, access_mode::read).code == errc::budget_too_small);
  const block_range some[] = {{0, 400}};
  REQUIRE_FALSE(a.pin(some, access_mode::read));
  std::memcpy(b.base(), b.base() + 3 * (mib / 2), mib / 2);
  a.unpin(some, access_mode::read);
}

TEST_CASE("pins of an array that is gone no longer count") {
  runtime rt({.memory = 1 * mib});
  memory_source source(16, small_block);
  const block_range half[] = {{0, 8}};
  for (int round = 0; round < 3; ++round) {
    segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 16}, source);
    REQUIRE_FALSE(s.pin(half, access_mode::read));
  }
}

TEST_CASE("a store takes its buffers off a budget in use, and gives them back when it is gone") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  const bool modified = GENERATE(false, true);
  volatile std::uint64_t sink = 0;
  for (std::size_t b = 0; b < 64; ++b)
    if (modified)
      words(s)[b * words_per_block] = b;
    else
      sink = sink + words(s)[b * words_per_block];
  for (int round = 0; round < 10; ++round) {
    const auto store = std::make_shared<int>();
    rt.pager().account_store(store, 256 * kib);
    rt.pager().account_store(store, 256 * kib);
    CHECK(rt.memory() == 768 * kib);
    CHECK(rt.stats().resident_bytes <= 768 * kib);
  }
  CHECK_THROWS_AS(rt.pager().account_store(std::make_shared<int>(), 900 * kib), usage_error);
  if (modified)
    for (std::size_t b = 0; b < 64; ++b) REQUIRE(words(s)[b * words_per_block] == b);
}

TEST_CASE("a budget or block that cannot be is refused with the limit") {
  CHECK_THROWS_WITH(runtime({.memory = 1000}), Catch::Contains(std::to_string(8 * page_bytes)));
  CHECK_THROWS_WITH(runtime({.memory = 1 * mib, .block = 5000}), Catch::Contains("4096"));
  runtime rt({.memory = 1 * mib});
  memory_source source(4, mib);
  CHECK_THROWS_WITH(segment(rt.pager(), {.name = "a", .block_bytes = mib, .blocks = 4}, source),
                    Catch::Contains("4194304"));
}
