// Sweeps that are repeated over somewhat more than the memory: some of it stays, and no pattern reads more for it.
// When a sweep repeats: policy/repeated_sweep_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;

namespace {

const std::size_t in_block = 128 * page_bytes;
const std::size_t block_words = in_block / 8;
constexpr std::size_t in_memory = 32;

struct swept {
  explicit swept(std::size_t n)
      : blocks(n),
        rt({.memory = in_memory * in_block, .block = in_block}),
        source(blocks, in_block),
        s(rt.pager(), {.name = "a", .block_bytes = in_block, .blocks = blocks}, source),
        words(reinterpret_cast<std::uint64_t*>(s.base())) {
    for (std::size_t i = 0; i < blocks * block_words; ++i) source.as<std::uint64_t>()[i] = i;
  }
  /// Reads all of a block.
  void read(std::size_t block) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < block_words; ++i) sum += words[block * block_words + i];
    total += sum;
  }
  /// Returns how much f, called for each block, has loaded.
  template <class F>
  std::size_t loads_of_pass(F f) {
    const std::size_t before = source.loads;
    for (std::size_t b = 0; b < blocks; ++b) f(b);
    return source.loads - before;
  }

  const std::size_t blocks;
  runtime rt;
  memory_source source;
  segment s;
  std::uint64_t* words;
  std::uint64_t total = 0;
};

}  // namespace

TEST_CASE("of what is swept again and again some stays in memory") {
  swept a(40);
  std::size_t least = 40;  // a busy machine gives the program time to run that it has not had
  for (int pass = 0; pass < 100 && least >= 30; ++pass)
    least = std::min(least, a.loads_of_pass([&](std::size_t b) { a.read(b); }));
  CHECK(least < 30);
}

TEST_CASE("what is swept and written again and again loses nothing, and some of it stays in memory") {
  swept a(40);
  std::size_t least = 40, passes = 0;
  for (; passes < 20 || (passes < 100 && least >= 30); ++passes)
    least = std::min(least, a.loads_of_pass([&](std::size_t b) {
      for (std::size_t i = 0; i < block_words; ++i) a.words[b * block_words + i] += 3;
    }));
  CHECK(least < 30);
  CHECK_FALSE(a.s.writeback());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < a.blocks * block_words; ++i) differ += a.source.as<std::uint64_t>()[i] != i + 3 * passes;
  CHECK(differ == 0);
}

TEST_CASE("a sweep that follows another one at some distance finds in memory what that has read") {
  swept a(90);
  std::size_t loads = 0;
  constexpr int passes = 60;
  for (int pass = 0; pass < passes; ++pass)
    loads += a.loads_of_pass([&](std::size_t b) {
      a.read(b);
      if (b >= 8) a.read(b - 8);
    });
  CHECK(loads < passes * a.blocks * 7 / 5);  // 3 / 2 if it were not noticed
}

#if defined(__x86_64__)
TEST_CASE("the blocks that one instruction needs do not go in turn where a sweep repeats") {
  swept a(90);
  auto* const bytes = reinterpret_cast<std::byte*>(a.words);
  const auto pass = [&] { a.loads_of_pass([&](std::size_t b) { a.read(b); }); };
  for (int i = 0; i < 8; ++i) pass();
  std::uint64_t most = 0;
  for (std::size_t from = 1; from < 40; ++from) {
    pass();
    const auto touches = [&] { return a.rt.stats().faults + a.rt.stats().hits; };
    const std::uint64_t before = touches();
    const std::byte* source = bytes + from * in_block - 4;  // both across a border
    std::byte* to = bytes + (from + 40) * in_block - 4;
    asm volatile("movsq" : "+D"(to), "+S"(source)::"memory");
    most = std::max(most, touches() - before);
  }
  CHECK(most <= 6);  // each is touched once, where the machine is busy some again
}
#endif
