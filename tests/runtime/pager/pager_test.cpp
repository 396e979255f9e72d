#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <numeric>
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
using ooc::testing::let_pass;
using ooc::testing::mib;
using ooc::testing::page_words;
using ooc::testing::soon;

TEST_CASE("a touched block holds what the store holds") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block);
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) source.as<std::uint64_t>()[i] = i;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) sum += words(s)[i] != i;
  CHECK(sum == 0);
  CHECK(s.dirty_blocks() == 0);
  CHECK(source.stores == 0);
}

TEST_CASE("a sweep is read ahead, random touches are not") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block, 2);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  volatile std::uint64_t sink = 0;
  SECTION("forward") {
    for (std::size_t b = 0; b < 256; ++b) sink = sink + words(s)[b * words_per_block];
    CHECK(rt.stats().read_ahead_hits > 200);
  }
  SECTION("backward") {
    for (std::size_t b = 256; b-- > 0;) sink = sink + words(s)[b * words_per_block];
    CHECK(rt.stats().read_ahead_hits > 200);
  }
  SECTION("down the columns of a table of 16 x 16 blocks") {
    for (std::size_t c = 0; c < 16; ++c)
      for (std::size_t r = 0; r < 16; ++r) sink = sink + words(s)[(r * 16 + c) * words_per_block];
    CHECK(rt.stats().read_ahead_hits > 200);
  }
  SECTION("three rows and their target, interleaved") {
    for (std::size_t b = 0; b < 64; ++b)
      for (std::size_t k = 0; k < 4; ++k) sink = sink + words(s)[(k * 64 + b) * words_per_block];
    CHECK(rt.stats().read_ahead_hits > 200);
  }
  SECTION("with advice against it, never") {
    s.advise(access_pattern::random);
    for (std::size_t b = 0; b < 256; ++b) sink = sink + words(s)[b * words_per_block];
    CHECK(rt.stats().read_ahead_blocks == 0);
  }
}

TEST_CASE("five blocks in one statement make progress in a pool of eight") {
  runtime rt({.memory = 8 * page_bytes, .block = page_bytes});
  memory_source source(64, page_bytes, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 64}, source);
  std::uint64_t* w = words(s);
  constexpr std::size_t n = 512;
  for (std::size_t b = 0; b < 64; ++b) w[b * n] = b;
  for (std::size_t b = 2; b < 62; ++b) w[b * n + 1] = w[(b - 2) * n] + w[(b - 1) * n] + w[(b + 1) * n] + w[(b + 2) * n];
  for (std::size_t b = 2; b < 62; ++b) REQUIRE(w[b * n + 1] == 4 * b);
}

TEST_CASE("a copy between two blocks works in the smallest pool") {
  runtime rt({.memory = 8 * page_bytes, .block = 2 * page_bytes});
  memory_source source(64, 2 * page_bytes, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = 2 * page_bytes, .blocks = 64}, source);
  std::byte* p = s.base();
  for (std::size_t i = 0; i < 64 * 2 * page_bytes; ++i) p[i] = static_cast<std::byte>(i * 7 >> 3);
  std::memmove(p + 3000, p + 100000, 200000);
  bool same = true;
  for (std::size_t i = 0; i < 200000; ++i)
    same &= p[3000 + i] == static_cast<std::byte>((100000 + i) * 7 >> 3) || 100000 + i < 203000;
  CHECK(same);
}

TEST_CASE("a failed write leaves the block dirty, the error comes out of writeback, a retry succeeds") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block);
  segment s(rt.pager(), {.name = "plate/a", .block_bytes = small_block, .blocks = 8}, source);
  words(s)[5] = 42;
  source.fail_stores = 1;
  const failure f = s.writeback();
  REQUIRE(f);
  CHECK(f.what.find("plate/a") != std::string::npos);
  CHECK(f.what.find("injected") != std::string::npos);
  CHECK(s.dirty_blocks() == 1);
  CHECK(words(s)[5] == 42);
  CHECK_FALSE(s.writeback());
  CHECK(source.as<std::uint64_t>()[5] == 42);
}

TEST_CASE("invalidate refuses dirty blocks, and forgets clean ones") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  words(s)[0] = 1;
  CHECK(s.invalidate(false) == segment::invalidated::dirty);
  CHECK_FALSE(s.writeback());
  source.as<std::uint64_t>()[0] = 7;
  CHECK(words(s)[0] == 1);
  CHECK(s.invalidate(false) == segment::invalidated::done);
  CHECK(words(s)[0] == 7);
  words(s)[0] = 8;
  CHECK(s.invalidate(true) == segment::invalidated::done);
  CHECK(words(s)[0] == 7);
}

TEST_CASE("a sweep is read ahead as far as an algorithm says") {
  runtime rt({.memory = 4 * mib});
  memory_source source(256, small_block);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 256}, source);
  volatile std::uint64_t sink = 0;
  std::size_t b = 0;
  const auto touch_until = [&](std::size_t end) {
    for (; b < end; ++b) sink = sink + words(s)[b * words_per_block];
  };
  touch_until(20);
  CHECK(soon([&] { return source.loads >= 20 + 4; }));
  CHECK(source.loads <= 20 + 8);  // an eighth of 64
  s.set_read_ahead(2 * mib);
  touch_until(40);
  CHECK(soon([&] { return source.loads >= 40 + 28; }));
  s.set_read_ahead(0);
}

// Blocks ahead of a sweep are chosen at once and asked for one block after the other.
TEST_CASE("no block is read ahead that has been cut off since a sweep wanted it") {
  struct halting : memory_source {
    halting() : memory_source(64, small_block) {}
    void load(block_index b, load_part part, std::byte* frame, completion done) override {
      if (b >= 4) {
        farthest = std::max<block_index>(farthest, b);
        soon([this] { return goes_on.load(); });
      }
      memory_source::load(b, part, frame, std::move(done));
    }
    std::atomic<block_index> farthest{0};
    std::atomic<bool> goes_on{false};
  };
  runtime rt({.memory = 4 * mib});
  halting source;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  volatile const std::uint64_t* const w = words(s);
  // The sweep may be recognised before its last touch, which then waits for who reads ahead.
  std::thread sweep([&] {
    for (std::size_t b = 0; b < 4; ++b) static_cast<void>(w[b * words_per_block]);
  });
  const bool reads_ahead = soon([&] { return source.farthest.load() == 4; });
  if (reads_ahead) s.shrink(4);
  source.goes_on = true;
  sweep.join();
  REQUIRE(reads_ahead);
  s.close();  // returns when nobody is at work for it
  CHECK(source.farthest == 4);
}

TEST_CASE("read-ahead that arrives after an invalidation is dropped") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block, 1, 20000);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  const block_range all[] = {{0, 8}};
  s.prefetch(all);
  CHECK(s.invalidate(false) == segment::invalidated::done);
  for (std::size_t b = 0; b < 8; ++b) CHECK(words(s)[b * words_per_block] == 0);
}

TEST_CASE("a pin whose load fails says so and pins nothing") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  source.fail_loads = 100;
  const block_range two[] = {{2, 4}};
  CHECK(s.pin(two, access_mode::read).what.find("injected") != std::string::npos);
  source.fail_loads = 0;
  CHECK_FALSE(s.pin(two, access_mode::read));
  s.unpin(two, access_mode::read);
  CHECK(s.invalidate(false) == segment::invalidated::done);
}

TEST_CASE("a promised block is not loaded for a write, and is for a read") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block);
  source.promise_covers_blocks = true;
  source.as<std::uint64_t>()[0] = 5;
  source.as<std::uint64_t>()[words_per_block + 1] = 6;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  s.advise(access_pattern::random);
  const block_range two[] = {{0, 2}};
  s.promise(two);
  CHECK(words(s)[0] == 5);
  words(s)[words_per_block] = 1;
  CHECK(source.loads == 1);
  CHECK(words(s)[words_per_block + 1] == 0);
}

TEST_CASE("a promise holds for a block in memory that is evicted before it is overwritten") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 1);
  source.promise_covers_blocks = true;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  volatile std::uint64_t sink = 0;
  for (std::size_t b = 0; b < 64; ++b) sink = sink + words(s)[b * words_per_block];
  const std::size_t before = source.loads;
  const block_range all[] = {{0, 64}};
  s.promise(all);
  for (std::size_t b = 0; b < 64; ++b) words(s)[b * words_per_block] = b;
  CHECK(source.loads == before);
  // A block that was overwritten is an ordinary one again.
  for (std::size_t b = 0; b < 64; ++b) words(s)[b * words_per_block + 1] = b;
  for (std::size_t b = 0; b < 64; ++b) REQUIRE(words(s)[b * words_per_block] == b);
}

TEST_CASE("a read of a block that was in memory when it was promised ends the promise") {
  runtime rt({.memory = 1 * mib});
  memory_source source(64, small_block, 1);
  source.promise_covers_blocks = true;
  for (std::size_t i = 0; i < 64 * words_per_block; ++i) source.as<std::uint64_t>()[i] = i;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
  s.advise(access_pattern::random);
  const block_range one[] = {{0, 1}};
  volatile std::uint64_t sink = words(s)[0];
  bool pinned = false;
  SECTION("mapped for reading") {}
  SECTION("pinned") {
    REQUIRE_FALSE(s.pin(one, access_mode::read));
    pinned = true;
  }
  s.promise(one);
  if (pinned) s.unpin(one, access_mode::read);
  sink = words(s)[1];
  for (std::size_t b = 1; b < 64; ++b) sink = sink + words(s)[b * words_per_block];
  words(s)[2] = 7;
  CHECK(words(s)[1] == 1);
  CHECK(words(s)[2] == 7);
}

TEST_CASE("promised blocks of an array with a limit of its own make room for its others") {
  runtime rt({.memory = 40 * page_bytes, .block = page_bytes});
  memory_source source(64, page_bytes, 1), others(20, page_bytes, 1);
  for (std::size_t i = 0; i < 64 * page_words; ++i) source.as<std::uint64_t>()[i] = i;
  segment s(rt.pager(), {.name = "a", .block_bytes = page_bytes, .blocks = 64, .max_resident = 4}, source);
  segment t(rt.pager(), {.name = "b", .block_bytes = page_bytes, .blocks = 20}, others);
  s.advise(access_pattern::random);
  const block_range all[] = {{0, 64}};
  volatile std::uint64_t sink = 0;
  for (int round = 0; round < 3; ++round)
    for (std::size_t b = 0; b < 64; ++b) {
      sink = sink + words(s)[b * page_words] + words(t)[b % 20 * page_words];
      s.promise(all);
      REQUIRE(words(s)[b * page_words + 1] == b * page_words + 1);
      s.promise(all);
    }
}

namespace {
// Stops the first thread that asks whether a promised block must be loaded.
class slow_answer : public memory_source {
 public:
  using memory_source::memory_source;
  bool nothing_to_load(block_index, load_part part) const noexcept override {
    if (part == load_part::outside_promise && !asked.exchange(true)) {
      asked.notify_all();
      answer.wait(false);
    }
    return part == load_part::outside_promise;
  }
  mutable std::atomic<bool> asked{false};
  std::atomic<bool> answer{false};
};
}  // namespace

TEST_CASE("a promise that another thread used up meanwhile does not cover a second write") {
  // By userfaultfd one thread would ask for both.
  runtime rt({.memory = 1 * mib, .mapping = mapping_way::signal});
  slow_answer source(8, small_block, 1);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  s.advise(access_pattern::random);
  const block_range one[] = {{0, 1}};
  s.promise(one);
  std::thread slow([&] { words(s)[1] = 2; });
  source.asked.wait(false);
  words(s)[0] = 1;
  CHECK_FALSE(s.writeback());
  CHECK(s.invalidate(false) == segment::invalidated::done);
  source.answer = true;
  source.answer.notify_all();
  slow.join();
  CHECK(words(s)[0] == 1);
  CHECK(words(s)[1] == 2);
}

TEST_CASE("a block that was read ahead under a promise is loaded whole once that is taken back") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block, 1);
  source.zeros_within_promise = true;
  source.as<std::uint64_t>()[1] = 7;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  s.advise(access_pattern::random);
  const block_range one[] = {{0, 1}};
  s.promise(one);
  s.prefetch(one);
  SECTION("after its arrival") {
    REQUIRE(soon([&] { return source.ended == 1; }));
    s.clear_promises();
  }
  SECTION("before") { s.clear_promises(); }
  words(s)[0] = 1;
  CHECK(words(s)[1] == 7);
}

TEST_CASE("a block that was read ahead under a promise is read again under the next one") {
  runtime rt({.memory = 1 * mib});
  memory_source source(8, small_block);
  source.zeros_within_promise = true;
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
  s.advise(access_pattern::random);
  const block_range one[] = {{0, 1}};
  s.promise(one);
  s.prefetch(one);
  s.promise(one);  // the source may know another box now
  words(s)[0] = 1;
  CHECK(source.loads == 2);
}

namespace {
// Ends a transfer on another thread, and returns from store() only some time later.
class late_return : public memory_source {
 public:
  using memory_source::memory_source;
  void store(block_index b, const std::byte* frame, completion done) override {
    ++inside;
    std::thread([&] { memory_source::store(b, frame, std::move(done)); }).join();
    let_pass(std::chrono::milliseconds(20));  // in which who does not wait would be gone
    --inside;
  }
  std::atomic<int> inside{0};
};
}  // namespace

TEST_CASE("a source may be destroyed once its segment is gone") {
  runtime rt({.memory = 1 * mib});
  late_return source(64, small_block);
  for (int round = 0; round < 5; ++round) {
    {
      segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 64}, source);
      for (std::size_t b = 0; source.inside == 0; ++b) words(s)[b % 64 * words_per_block] = b;
    }
    REQUIRE(source.inside == 0);
  }
}

TEST_CASE("an invalidation beside pins and writes drops neither") {
  runtime rt({.memory = 4 * mib});
  memory_source source(32, small_block, 2, 100);
  segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 32}, source);
  std::atomic<bool> stop{false};
  std::thread other([&] {  // with pauses: else no load would ever get through
    for (unsigned n = 0; !stop; ++n) {
      s.invalidate(false);
      let_pass(std::chrono::microseconds(n % 8 * 50));
    }
  });
  std::size_t lost = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    const block_index b = i % 32;
    const block_range one[] = {{b, b + 1}};
    if (s.pin(one, access_mode::read)) ++lost;
    words(s)[b * words_per_block] = i;
    s.unpin(one, access_mode::read);
    if (words(s)[b * words_per_block] != i) ++lost;
    if (i % 8 == 7 && s.writeback()) ++lost;
  }
  stop = true;
  other.join();
  CHECK(lost == 0);
  const block_range all[] = {{0, 32}};
  REQUIRE_FALSE(s.pin(all, access_mode::read));
  s.unpin(all, access_mode::read);
  CHECK(s.invalidate(true) == segment::invalidated::done);
  CHECK(rt.stats().resident_bytes == 0);
}

TEST_CASE("a second runtime in the process is refused") {
  runtime rt;
  CHECK_THROWS_AS(runtime{}, usage_error);
}

namespace {
std::atomic<int> foreign_faults{0};
void foreign_handler(int, siginfo_t* info, void*) {
  ++foreign_faults;
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~4095ul);
  ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE);
}
}  // namespace

TEST_CASE("a fault outside every array goes to the handler that was there before") {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = foreign_handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &before);
  {
    runtime rt({.memory = 1 * mib});
    auto* page = static_cast<char*>(::mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *static_cast<volatile char*>(page) = 1;
    CHECK(foreign_faults == 1);
    // One that was installed later, as MPI_Init does, is found when an array is made.
    ::sigaction(SIGSEGV, &action, nullptr);
    memory_source source(4, small_block);
    segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 4}, source);
    words(s)[0] = 1;
    CHECK(words(s)[0] == 1);
    CHECK(foreign_faults == 1);
    ::munmap(page, page_bytes);
  }
  ::sigaction(SIGSEGV, &before, nullptr);
}

TEST_CASE("a load that fails under an element access ends the process with the documented status") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(2);
    runtime rt({.memory = 1 * mib});
    auto* shared = static_cast<std::uint64_t*>(
        ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    (void)shared;
    memory_source source(8, small_block, 1);
    segment s(rt.pager(), {.name = "a", .block_bytes = small_block, .blocks = 8}, source);
    source.fail_loads = 1000;
    volatile std::uint64_t x = words(s)[0];
    (void)x;
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == fatal_exit_status);
}
