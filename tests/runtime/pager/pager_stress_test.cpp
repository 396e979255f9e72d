// Random schedules over the pager: threads that share blocks, flushes, invalidations of other
// segments, pins, delays, foreign mappings and forks, all at once, against a plain model.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "oocarray/runtime.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::testing::let_pass;
using ooc::testing::random_pause;

namespace {

std::uint64_t seed() {
  static const std::uint64_t value = testing::random_seed("pager_stress");
  return value;
}

struct shape {
  std::size_t block_bytes, blocks;
  std::uint64_t memory;
  unsigned threads;
  unsigned together = 1;  ///< blocks that one request loads
  bool at_once = false;   ///< the thread that touches loads four of five
};

// Every thread owns the words whose number is congruent to its own modulo the number of threads, so
// that all of them write into every block.
void run(const shape& sh, bool with_forks) {
  runtime rt({.memory = sh.memory, .block = sh.block_bytes});
  memory_source source(sh.blocks, sh.block_bytes, 3, 200);
  source.together = sh.together;
  source.at_once = sh.at_once;
  segment s(rt.pager(), {.name = "a", .block_bytes = sh.block_bytes, .blocks = sh.blocks}, source);
  auto* w = reinterpret_cast<std::uint64_t*>(s.base());
  const std::size_t n = sh.blocks * sh.block_bytes / 8;
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> wrong{0};

  std::vector<std::thread> helpers;
  helpers.emplace_back([&] {
    while (!stop) {
      if (const failure f = s.writeback()) wrong += 1000000;
      let_pass(std::chrono::milliseconds(2));  // the threads write meanwhile
    }
  });
  helpers.emplace_back([&] {
    std::minstd_rand random(static_cast<unsigned>(seed()) + 77);
    while (!stop) {
      const block_index b = random() % sh.blocks;
      const block_range one[] = {{b, b + 1}};
      const access_mode m = random() % 2 ? access_mode::write : access_mode::read;
      if (!s.pin(one, m)) {
        random_pause(std::chrono::microseconds(random() % 500));
        s.unpin(one, m);
      }
      const block_range some[] = {{b, std::min<block_index>(b + sh.together, sh.blocks)}};
      s.prefetch(some);
    }
  });
  helpers.emplace_back([&] {
    while (!stop) {
      void* p =
          ::mmap(nullptr, sh.block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      std::memset(p, 0xee, sh.block_bytes);
      ::munmap(p, sh.block_bytes);
    }
  });
  if (with_forks)
    helpers.emplace_back([&] {
      while (!stop) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(0);
        ::waitpid(child, nullptr, 0);
        let_pass(std::chrono::milliseconds(20));  // a fork stops all threads
      }
    });

  std::vector<std::thread> threads;
  for (unsigned t = 0; t < sh.threads; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(seed()) + t);
      std::vector<std::uint64_t> model(n / sh.threads + 1);
      const std::size_t mine = (n - t + sh.threads - 1) / sh.threads;
      for (int op = testing::rounds(1500, 150000); op > 0; --op) {
        // Mostly runs, sometimes single words far away.
        std::size_t k = random() % mine;
        const std::size_t length = random() % 4 ? 1 : 600;
        const bool write = random() % 2;
        for (std::size_t i = 0; i < length && k < mine; ++i, ++k) {
          volatile std::uint64_t& x = w[k * sh.threads + t];
          if (write)
            x = model[k] = random();
          else if (x != model[k])
            ++wrong;
        }
      }
      for (std::size_t k = 0; k < mine; ++k)
        if (w[k * sh.threads + t] != model[k]) ++wrong;
    });
  for (auto& t : threads) t.join();
  stop = true;
  for (auto& t : helpers) t.join();
  CHECK(wrong == 0);
  CHECK_FALSE(s.writeback());
  for (std::size_t i = 0; i < n; i += 97)
    if (source.as<std::uint64_t>()[i] != w[i]) ++wrong;
  CHECK(wrong == 0);
  CHECK(rt.stats().resident_bytes <= sh.memory);
}

}  // namespace

TEST_CASE("threads sharing every block lose nothing under flushes, pins and foreign mappings") {
  SECTION("8 threads, an eighth of the array in memory") { run({65536, 64, 8 * 65536, 8}, false); }
  SECTION("4 threads, small blocks") { run({page_bytes, 512, 32 * page_bytes, 4}, false); }
  SECTION("3 threads, blocks of no power of two") { run({12288, 100, 10 * 12288, 3}, false); }
  SECTION("4 threads, blocks that come four at a time") { run({16384, 128, 32 * 16384, 4, 4}, false); }
  SECTION("4 threads that load small blocks themselves") { run({page_bytes, 512, 32 * page_bytes, 4, 1, true}, false); }
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support threads in forked children
TEST_CASE("fork in the middle of it corrupts nothing") { run({65536, 32, 8 * 65536, 4}, true); }

TEST_CASE("2 MiB blocks in huge pages") { run({2 << 20, 24, 10 << 20, 3}, false); }
#endif
