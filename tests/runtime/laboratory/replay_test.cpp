// The laboratory of `oocbench policy`: what it replays, and the rivals that it stands the pager beside.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "oocarray/runtime.hpp"
#include "policy/access_trace.hpp"
#include "policy/replayed_pager.hpp"
#include "policy/rivals.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"
#include "support/temporary_folder.hpp"

using namespace bench::policy;
using namespace ooc::literals;

namespace {

/// Blocks that come whole, in memory for four.
access_trace of_blocks(std::initializer_list<std::uint64_t> blocks) {
  access_trace t{
      .name = "t", .budget = 4 * 64_KiB, .unit = 64_KiB, .arrays = {{16 * 64_KiB, 64_KiB, false}}, .accesses = {}};
  for (const std::uint64_t b : blocks) t.accesses.push_back({b * 64_KiB, 1, 0, false});
  return t;
}

const access_trace& generated(const std::string& name) {
  static const std::vector<access_trace> all = generated_traces(4_MiB);
  for (const access_trace& t : all)
    if (t.name == name) return t;
  throw std::runtime_error(name);
}

double over(const outcome& ours, const rival_outcome& theirs, const access_trace& t) {
  return static_cast<double>(ours.bytes_read) / static_cast<double>(theirs.misses * t.unit);
}

}  // namespace

TEST_CASE("the rivals miss what the textbook says") {
  const access_trace t = of_blocks({0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(replay_lru(t).misses == 10);
  CHECK(replay_optimum(t).misses == 6);  // of the second pass only the one for which another one went
  CHECK(replay_lru(of_blocks({0, 1, 2, 0, 3, 4, 0, 1})).misses == 6);
  CHECK(replay_optimum(of_blocks({0, 1, 2, 0, 3, 4, 0, 1})).misses == 5);
  CHECK(replay_s3_fifo(of_blocks({0, 0, 0, 1, 2, 3, 4, 5, 6, 0})).misses == 7);  // 0 has gone to the main queue
}

TEST_CASE("nothing misses less than the optimum, whatever the trace") {
  for (const access_trace& t : generated_traces(4_MiB)) {
    INFO(t.name);
    const std::uint64_t least = replay_optimum(t).misses;
    CHECK(least <= replay_lru(t).misses);
    CHECK(least <= replay_s3_fifo(t).misses);
    CHECK(least > 0);
  }
}

TEST_CASE("a replay comes to the same each time") {
  for (const char* name : {"sweep_again", "zipf_read", "column_update", "transpose_naive", "blocks_zipf"}) {
    INFO(name);
    CHECK(replay_with_pager(generated(name)) == replay_with_pager(generated(name)));
  }
}

TEST_CASE("a sweep is read once, and waits for its first blocks only") {
  const access_trace& t = generated("sweep");
  const outcome o = replay_with_pager(t);
  CHECK(over(o, replay_optimum(t), t) < 1.02);
  CHECK(o.faults < 16);
}

TEST_CASE("random touches read hardly more than with the better of two textbook replacements") {
  const access_trace& t = generated("random_read");
  CHECK(over(replay_with_pager(t), replay_lru(t), t) < 1.05);
  CHECK(over(replay_with_pager(t), replay_s3_fifo(t), t) < 1.05);
}

TEST_CASE("what fits in memory stays there after a sweep over more than that has been repeated") {
  const access_trace& t = generated("sweep_again_then_less");
  access_trace before = t;
  std::erase_if(before.accesses, [&](const bench::policy::access& a) { return a.place >= 4 * t.budget; });
  CHECK(replay_with_pager(t).bytes_read < replay_with_pager(before).bytes_read + 2 * t.budget);
}

TEST_CASE("what a replay modifies is written, each block that was not written before the end, too") {
  access_trace t = of_blocks({0, 1, 2});
  for (bench::policy::access& a : t.accesses) a.write = true;
  CHECK(replay_with_pager(t).bytes_written == 3 * 64_KiB);
  CHECK(replay_lru(t).written == 3);
}

TEST_CASE("a recording replays with the touches that the pager saw") {
  const ooc::testing::temporary_folder folder;
  const std::string file = (folder / "trace").string();
  ::setenv("OOC_TRACE", file.c_str(), 1);
  std::uint64_t faults = 0;
  {
    ooc::runtime rt({.memory = 16 * 64_KiB, .block = 64_KiB, .grains = false});
    ooc::test::memory_source source(64, 64_KiB);
    ooc::detail::segment s(rt.pager(), {.name = "a", .block_bytes = 64_KiB, .blocks = 64}, source);
    for (int k = 0; k < 3; ++k)
      for (std::size_t b = 0; b < 64; b += 2) reinterpret_cast<volatile char*>(s.base())[b * 37 % 64 * 64_KiB + 5] = 1;
    CHECK_FALSE(s.writeback());
    faults = rt.stats().faults;
  }
  ::unsetenv("OOC_TRACE");
  const access_trace t = recorded_trace(file);
  REQUIRE(t.arrays.size() == 1);
  CHECK(t.arrays[0].bytes == 64 * 64_KiB);
  CHECK(t.arrays[0].block_bytes == 64_KiB);
  CHECK_FALSE(t.arrays[0].in_grains);
  CHECK(t.budget == 16 * 64_KiB);
  CHECK(t.accesses.size() >= faults);
  CHECK(t.accesses[0].place % 64_KiB == 5);
  CHECK(t.accesses[0].write);
  CHECK(replay_with_pager(t).bytes_written > 0);
  CHECK(replay_with_pager(t) == replay_with_pager(t));
}
