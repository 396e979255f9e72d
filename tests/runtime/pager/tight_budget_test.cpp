// Budgets that are just enough: what is accepted neither hangs nor ends the process, and what would
// is refused with the number that would do.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <regex>
#include <thread>

#include "runtime/blocks/frame_needs.hpp"
#include "support/pager_words.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::test::words;
using ooc::testing::mib;

namespace {

const std::size_t page = page_bytes;

// A test that hangs ends here.
struct time_limit {
  explicit time_limit(unsigned seconds) { ::alarm(seconds); }
  ~time_limit() { ::alarm(0); }
};

// One instruction whose source and destination may each lie across a border.
void copy_16(std::byte* to, const std::byte* from) {
#if defined(__SSE2__)
  asm volatile("movups (%0), %%xmm0\n\tmovups %%xmm0, (%1)" ::"r"(from), "r"(to) : "xmm0", "memory");
#else
  std::memcpy(to, from, 16);
#endif
}

// A move from memory to memory: all its blocks at the same moment.
void move_8(std::byte* to, const std::byte* from) {
#if defined(__x86_64__)
  asm volatile("movsq" : "+D"(to), "+S"(from)::"memory");
#else
  std::memcpy(to, from, 8);
#endif
}

std::uint64_t number_after(const std::string& text, const std::string& words) {
  std::smatch m;
  REQUIRE(std::regex_search(text, m, std::regex(words + " ([0-9]+)")));
  return std::stoull(m[1]);
}

}  // namespace

TEST_CASE("an array that one copy could exhaust is refused with the memory and the block that would do") {
  const bool shared = GENERATE(false, true);
  runtime rt({.memory = 8 * page});
  memory_source source(64, 4 * page);
  const segment_options o{.name = "a", .block_bytes = 4 * page, .blocks = 64, .shared = shared};
  std::string said;
  try {
    segment(rt.pager(), o, source);
  } catch (const usage_error& e) {
    CHECK(e.code() == errc::budget_too_small);
    said = e.what();
  }
  CHECK(number_after(said, "give the runtime at least") == (shared ? 24 : 16) * page);
  CHECK(number_after(said, "choose a block of at most") == (shared ? 1 : 2) * page);
}

TEST_CASE("the memory that a refusal names is enough") {
  const bool shared = GENERATE(false, true);
  const std::uint64_t least = (shared ? 6 : 4) * 2 * page;
  memory_source source(64, 2 * page);
  const segment_options o{.name = "a", .block_bytes = 2 * page, .blocks = 64, .shared = shared};
  if (least > 8 * page) {
    runtime rt({.memory = least - page});
    CHECK_THROWS_AS(segment(rt.pager(), o, source), usage_error);
  }
  time_limit t(60);
  runtime rt({.memory = least});
  segment s(rt.pager(), o, source);
  for (std::size_t b = 1; b < 60; ++b) move_8(s.base() + b * 2 * page - 4, s.base() + (60 - b) * 2 * page - 4);
  CHECK_FALSE(s.writeback());
}

TEST_CASE("a second array is refused where its larger blocks would leave too little") {
  runtime rt({.memory = 16 * page});
  memory_source small(64, page), large(16, 4 * page);
  segment a(rt.pager(), {.name = "a", .block_bytes = page, .blocks = 64}, small);
  const block_range some[] = {{0, 4}};
  REQUIRE_FALSE(a.pin(some, access_mode::read));
  const segment_options o{.name = "b", .block_bytes = 4 * page, .blocks = 16};
  CHECK_THROWS_WITH(segment(rt.pager(), o, large), Catch::Contains(std::to_string(4 * page) + " are pinned"));
  a.unpin(some, access_mode::read);
  segment b(rt.pager(), o, large);
  CHECK(a.pin(some, access_mode::read).code == errc::budget_too_small);
}

TEST_CASE("pins of an array with buffers of its own leave four of them") {
  time_limit t(60);
  runtime rt({.memory = 1 * mib});
  memory_source source(64, page);
  const std::uint64_t buffers = GENERATE(4, 6);
  segment s(rt.pager(), {.name = "a", .block_bytes = page, .blocks = 64, .max_resident = buffers}, source);
  const block_range one[] = {{0, 1}}, two[] = {{0, 2}}, three[] = {{0, 3}};
  const failure f = s.pin(three, access_mode::read);
  CHECK(f.code == errc::budget_too_small);
  CHECK(number_after(f.what, "would need") == 7);
  CHECK(static_cast<bool>(s.pin(one, access_mode::read)) == (buffers == 4));
  if (buffers == 4) return;
  s.unpin(one, access_mode::read);
  REQUIRE_FALSE(s.pin(two, access_mode::read));
  for (std::size_t b = 3; b < 60; ++b) move_8(s.base() + b * page - 4, s.base() + (62 - b) * page - 4);
  s.unpin(two, access_mode::read);
}

TEST_CASE("pins of a shared array count their twins") {
  runtime rt({.memory = 8 * page, .block = page});
  memory_source source(64, page);
  segment s(rt.pager(), {.name = "a", .block_bytes = page, .blocks = 64, .shared = true}, source);
  const block_range one[] = {{0, 1}}, four[] = {{0, 4}};
  const failure f = s.pin(four, access_mode::write);
  CHECK(f.code == errc::budget_too_small);
  CHECK(number_after(f.what, "give the runtime at least") == (8 + 6) * page);
  time_limit t(60);
  REQUIRE_FALSE(s.pin(one, access_mode::write));
  for (std::size_t b = 2; b < 60; ++b) move_8(s.base() + b * page - 4, s.base() + (61 - b) * page - 4);
  s.unpin(one, access_mode::write);
  CHECK_FALSE(s.writeback());
}

TEST_CASE("the block that arrays get by themselves fits what a store has left of the budget") {
  runtime rt({.memory = 64 * page});
  CHECK(rt.pager().default_block_bytes() == 2 * page);
  const auto store = std::make_shared<int>();
  rt.pager().account_store(store, 56 * page);
  CHECK(rt.pager().default_block_bytes() == page);
}

TEST_CASE("memory that was lent and came back can be pinned") {
  time_limit t(60);
  runtime rt({.memory = 32 * page});
  memory_source source(64, page);
  auto store = std::make_shared<int>();
  rt.pager().account_store(store, 16 * page);
  segment s(rt.pager(), {.name = "a", .block_bytes = page, .blocks = 64}, source);
  store.reset();
  rt.pager().account_store(std::make_shared<int>(), page);
  const block_range most[] = {{0, 24}};
  REQUIRE_FALSE(s.pin(most, access_mode::read));
  for (std::size_t b = 30; b < 60; ++b) move_8(s.base() + b * page - 4, s.base() + 27 * page - 4);
  s.unpin(most, access_mode::read);
}

// The block is in memory and all that came after it is larger, clean, and younger.
TEST_CASE("a first write gets its twin though all other blocks were touched later") {
  runtime rt({.memory = 17 * page, .read_ahead = 1});
  memory_source small(16, page), large(16, 4 * page);
  segment a(rt.pager(), {.name = "a", .block_bytes = page, .blocks = 16, .shared = true}, small);
  segment b(rt.pager(), {.name = "b", .block_bytes = 4 * page, .blocks = 16}, large);
  const auto read = [](const std::byte* at) { static_cast<void>(*const_cast<const volatile std::byte*>(at)); };
  read(a.base());
  for (const std::size_t block : {3, 9, 6, 12}) read(b.base() + block * 4 * page);
  a.base()[0] = std::byte{7};
  CHECK_FALSE(a.writeback());
  CHECK(small.as<std::byte>()[0] == std::byte{7});
}

// Four other blocks fill the memory beside it.  All are clean, and one of them must go.
TEST_CASE("a first write to a block that was read ahead gets its twin on the least memory") {
  runtime rt({.memory = 16 * page, .read_ahead = 1});
  memory_source large(16, 4 * page), small(16, 2 * page);
  segment a(rt.pager(), {.name = "a", .block_bytes = 4 * page, .blocks = 16}, large);
  segment b(rt.pager(), {.name = "b", .block_bytes = 2 * page, .blocks = 16, .shared = true}, small);
  const auto read = [](const std::byte* at) { static_cast<void>(*const_cast<const volatile std::byte*>(at)); };
  for (const std::size_t block : {3, 9, 6}) read(a.base() + block * 4 * page);
  read(b.base());
  const block_range ahead[] = {{1, 2}};
  b.prefetch(ahead);
  REQUIRE(rt.stats().read_ahead_blocks == 1);
  b.base()[2 * page] = std::byte{7};
  CHECK(rt.stats().read_ahead_hits == 1);
  CHECK_FALSE(b.writeback());
  CHECK(small.as<std::byte>()[2 * page] == std::byte{7});
}

// Programs of one to three threads on budgets from the minimum up, beside a model in memory.
// Threads write to rows of their own; what they read is anything of their own rows.
TEST_CASE("random programs on the least memory end, and are right") {
  const auto base_seed = [] {
    const char* s = std::getenv("OOC_TEST_SEED");
    return s ? std::strtoul(s, nullptr, 10) : std::random_device{}();
  }();
  const int rounds = std::getenv("OOC_TEST_SEED") ? 1 : 20;
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<unsigned>(base_seed + round);
    CAPTURE(seed);

    time_limit t(90);
    std::mt19937 random(seed);
    const auto pick = [&](unsigned n) { return static_cast<std::size_t>(random() % n); };

    struct array {
      segment_options options;
      std::unique_ptr<memory_source> source;
      std::unique_ptr<segment> s;
      std::vector<std::byte> model;
    };
    std::optional<runtime> rt;  // outlives its arrays
    std::vector<array> arrays(1 + pick(3));
    frame_needs needs;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      segment_options& o = arrays[i].options;
      o.name = std::string(1, static_cast<char>('a' + i));
      o.block_bytes = page << pick(3);
      o.blocks = 12 + pick(30);
      o.shared = pick(2) == 0;
      o.max_resident = pick(3) == 0 ? 4 + pick(4) : 0;
      needs.add(o.block_bytes, o.shared);
    }
    const std::uint64_t memory = std::max<std::uint64_t>(8 * page, needs.bytes() + pick(4) * pick(4) * page);
    rt.emplace(runtime_options{.memory = memory, .read_ahead = static_cast<unsigned>(pick(3))});
    for (array& a : arrays) {
      a.source =
          std::make_unique<memory_source>(a.options.blocks, a.options.block_bytes, static_cast<unsigned>(pick(3)), 50);
      a.source->together = 1 + static_cast<unsigned>(pick(3));
      a.s = std::make_unique<segment>(rt->pager(), a.options, *a.source);
      a.model.resize(a.options.blocks * a.options.block_bytes);
    }

    const std::size_t threads = 1 + pick(3);
    std::fprintf(stderr, "tight budget: OOC_TEST_SEED=%u\n", seed);
    const auto program = [&](std::size_t me) {
      std::mt19937 mine(seed * 31 + static_cast<unsigned>(me));
      const auto any = [&](std::size_t n) { return static_cast<std::size_t>(mine() % n); };
      // A place near a border more often than not, all of it in this thread's part.
      const auto place = [&](const array& a, std::size_t n) {
        const std::size_t part = a.model.size() / threads / 64 * 64;
        const std::size_t first = me * part;
        std::size_t at = any(part - n);
        if (any(4) != 0) {
          const std::size_t border = (first + at) / a.options.block_bytes * a.options.block_bytes;
          if (border >= first + n && border + n < first + part) at = border - first - any(n);
        }
        return first + at;
      };
      std::vector<std::pair<array*, block_range>> pins;
      for (int step = 0; step < 250; ++step) {
        array& from = arrays[any(arrays.size())];
        array& to = arrays[any(arrays.size())];
        switch (any(12)) {
          case 0: {
            const block_range r[] = {{0, 0}};
            block_range p = r[0];
            p.first = any(from.options.blocks);
            p.last = std::min<block_index>(from.options.blocks, p.first + 1 + any(2));
            // Small budgets refuse; what they accept must do no harm.
            if (pins.size() < 3 && !from.s->pin({&p, 1}, access_mode::read)) pins.emplace_back(&from, p);
            break;
          }
          case 1:
            if (!pins.empty()) {
              pins.back().first->s->unpin({&pins.back().second, 1}, access_mode::read);
              pins.pop_back();
            }
            break;
          case 2:
            if (any(10) == 0) from.s->writeback();
            break;
          default: {
            const std::size_t n = any(2) ? 8 : 16;
            const std::size_t x = place(from, n), y = place(to, n);
            (n == 8 ? move_8 : copy_16)(to.s->base() + y, from.s->base() + x);
            std::byte copy[16];
            std::memcpy(copy, from.model.data() + x, n);
            std::memcpy(to.model.data() + y, copy, n);
            if (any(2)) {
              const std::size_t z = place(to, 8);
              const std::uint64_t v = mine();
              std::memcpy(to.s->base() + z, &v, 8);
              std::memcpy(to.model.data() + z, &v, 8);
            }
          }
        }
      }
      for (auto& [a, p] : pins) a->s->unpin({&p, 1}, access_mode::read);
    };
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < threads; ++i) running.emplace_back(program, i);
    for (std::thread& r : running) r.join();
    for (array& a : arrays) {
      CHECK_FALSE(a.s->writeback());
      CHECK(std::memcmp(a.source->as<std::byte>(), a.model.data(), a.model.size()) == 0);
    }
  }
}
