// Random schedules over grains: walks down columns that read, write or do both, pins, write-back, invalidation and
// other sizes, against a plain model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;

namespace {

const std::size_t column_block = 64 * page_bytes;
const std::size_t column_block_words = column_block / 8;

/// An array in grains, what it should hold, and random work on it.
class random_columns {
 public:
  random_columns(std::size_t blocks, std::uint64_t memory, bool at_once, unsigned threads)
      : rt_({.memory = memory, .block = column_block}),
        source_(blocks, column_block, threads, threads ? 100 : 0),
        grains_(source_.in_blocks_of(grain_bytes)),
        s_(rt_.pager(),
           {.name = "a", .block_bytes = column_block, .blocks = blocks, .grains = grains_.get(), .element_bytes = 8},
           source_),
        words_(reinterpret_cast<std::uint64_t*>(s_.base())),
        model_(blocks * column_block_words),
        most_(blocks) {
    source_.at_once = at_once;
    for (std::size_t i = 0; i < model_.size(); ++i) source_.as<std::uint64_t>()[i] = model_[i] = i;
  }

  void one(std::minstd_rand& random) {
    switch (random() % 16) {
      case 0: return resize(random);
      case 1:
        if (s_.writeback()) ++wrong_;
        return;
      case 2: return forget(random);
      case 3: return pinned(random);
      case 4: return rows(random);
      case 5: return anywhere(random);
      case 6: return promised(random);
      default: return columns(random);
    }
  }
  std::size_t wrong() {
    for (std::size_t i = 0; i < size(); ++i) wrong_ += words_[i] != model_[i];
    if (s_.writeback()) ++wrong_;
    for (std::size_t i = 0; i < size(); ++i) wrong_ += source_.as<std::uint64_t>()[i] != model_[i];
    return wrong_;
  }
  runtime& rt() { return rt_; }

 private:
  std::size_t size() const { return blocks_now() * column_block_words; }
  std::size_t blocks_now() const { return s_.blocks(); }
  void touch(std::size_t i, unsigned how, std::uint64_t value) {
    if (how != 1 && words_[i] != model_[i]) ++wrong_;
    if (how != 0) words_[i] = model_[i] = value;
  }
  void columns(std::minstd_rand& random) {
    const std::size_t pitches[] = {512, 513, 700, 1536, 2000, 5793, 4096, size() / 2 + 3, size() / 5};
    const std::size_t pitch = std::max<std::size_t>(2, pitches[random() % 9]), how = random() % 3;
    const bool back = random() % 4 == 0, stencil = random() % 4 == 0;
    const std::size_t first = random() % pitch, n = 1 + random() % 12, by = random() % 3 ? 1 : 1 + random() % pitch;
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t begin = (first + c * by) % pitch, rows = (size() - begin + pitch - 1) / pitch;
      if (begin >= size()) continue;
      for (std::size_t k = 0; k < rows; ++k) {
        const std::size_t i = begin + (back ? rows - 1 - k : k) * pitch;
        if (stencil && i >= pitch) touch(i - pitch, 0, 0);
        if (stencil && i > 0) touch(i - 1, 0, 0);
        touch(i, static_cast<unsigned>(how), random());
      }
    }
  }
  void rows(std::minstd_rand& random) {
    const std::size_t from = random() % size(), to = std::min(size(), from + random() % (3 * column_block_words));
    const auto how = static_cast<unsigned>(random() % 3);
    for (std::size_t i = from; i < to; ++i) touch(i, how, i * 7);
  }
  void anywhere(std::minstd_rand& random) {
    for (int k = 0; k < 300; ++k) touch(random() % size(), static_cast<unsigned>(random() % 3), random());
  }
  void forget(std::minstd_rand& random) {
    const block_index b = random() % blocks_now();
    const block_range some[] = {{b, std::min<block_index>(b + random() % 4, blocks_now())}};
    if (s_.writeback(some)) ++wrong_;
    if (s_.invalidate(some, false) == segment::invalidated::pinned) ++wrong_;
  }
  void pinned(std::minstd_rand& random) {
    const block_index b = random() % blocks_now();
    const block_range one[] = {{b, b + 1}};
    const access_mode m = random() % 2 ? access_mode::write : access_mode::read;
    if (s_.pin(one, m)) return;
    for (int k = 0; k < 50; ++k)
      touch(b * column_block_words + random() % column_block_words, m == access_mode::write ? 2 : 0, random());
    if (random() % 2 && s_.writeback(one)) ++wrong_;
    columns(random);
    s_.unpin(one, m);
  }
  void promised(std::minstd_rand& random) {
    const block_index b = random() % blocks_now();
    const block_range one[] = {{b, b + 1}};
    s_.promise(one);
    if (random() % 2) {
      s_.clear_promises(one);
    } else {
      for (std::size_t i = b * column_block_words; i < (b + 1) * column_block_words; ++i) touch(i, 1, i * 11);
      s_.clear_promises(one);
    }
  }
  void resize(std::minstd_rand& random) {
    const std::size_t to = most_ / 2 + random() % (most_ / 2 + 1), before = blocks_now();
    if (to < before) {
      s_.shrink(to, to * column_block);
    } else if (to > before) {
      for (std::size_t i = size(); i < to * column_block_words; ++i) source_.as<std::uint64_t>()[i] = model_[i] = i * 3;
      s_.grow(to, to * column_block);
    }
  }

  runtime rt_;
  memory_source source_;
  std::unique_ptr<memory_source> grains_;
  segment s_;
  volatile std::uint64_t* words_;
  std::vector<std::uint64_t> model_;
  const std::size_t most_;
  std::size_t wrong_ = 0;
};

}  // namespace

TEST_CASE("columns, rows, pins, promises, write-back and other sizes lose nothing of an array in grains") {
  const std::uint64_t seed = testing::random_seed("column_stress");
  for (const bool at_once : {false, true})
    for (const unsigned threads : {0u, 3u})
      for (const std::uint64_t memory : {2_MiB, 4_MiB, 7_MiB}) {
        CAPTURE(seed, at_once, threads, memory);
        std::minstd_rand random(static_cast<unsigned>(seed + memory + threads + at_once));
        random_columns a(64, memory, at_once, threads);
        for (int op = testing::rounds(20, 300); op > 0; --op) a.one(random);
        CHECK(a.wrong() == 0);
        CHECK(a.rt().stats().resident_bytes <= memory);
      }
}

TEST_CASE("an array whose columns are read ahead becomes shorter and longer at any moment") {
  const std::uint64_t seed = testing::random_seed("column_stress");
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (const unsigned threads : {0u, 3u}) {
    runtime rt({.memory = 4_MiB, .block = column_block});
    constexpr std::size_t blocks = 64;
    memory_source source(blocks, column_block, threads, threads ? 100 : 0);
    const auto grains = source.in_blocks_of(grain_bytes);
    segment s(rt.pager(),
              {.name = "a", .block_bytes = column_block, .blocks = blocks, .grains = grains.get(), .element_bytes = 8},
              source);
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(s.base());
    for (int round = testing::rounds(200, 5000); round > 0; --round) {
      const std::size_t n = s.blocks() * column_block_words, pitch = 513 + 512 * (random() % 4), first = random() % 512;
      const bool write = random() % 4 != 0;
      const std::size_t end = n / 2 + random() % (n / 2);
      for (std::size_t i = first; i < end; i += pitch) {
        const std::uint64_t was = words[i];
        if (write) words[i] = was + 1;
      }
      const std::size_t to = blocks / 4 + random() % (blocks / 4);
      s.shrink(to, to * column_block);
      s.grow(blocks, blocks * column_block);
    }
    CHECK_FALSE(s.writeback());
  }
}
