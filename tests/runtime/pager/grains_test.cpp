// Blocks that are in memory in parts: which ones are, how they become whole, and that no byte is lost
// between the two.
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "runtime/policy/grain_choice.hpp"
#include "support/memory_source.hpp"
#include "support/pager_words.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/resident_bytes.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::testing::kib;
using ooc::testing::let_pass;
using ooc::testing::mib;

namespace {

const std::size_t block_bytes = 64 * grain_bytes;
const std::size_t words_in_grain = grain_bytes / 8;
const std::size_t words_in_block = block_bytes / 8;

/// An array of blocks that may come in grains, larger than the memory.
struct fixture {
  explicit fixture(std::size_t blocks = 64, std::uint64_t memory = 4 * mib, unsigned threads = 0, unsigned delay_us = 0,
                   std::size_t block = block_bytes)
      : rt({.memory = memory, .block = block}),
        source(blocks, block, threads, delay_us),
        grains(source.in_blocks_of(grain_bytes)),
        s(rt.pager(), {.name = "a", .block_bytes = block, .blocks = blocks, .grains = grains.get(), .element_bytes = 8},
          source),
        words(reinterpret_cast<std::uint64_t*>(s.base())),
        count(blocks * block / 8) {
    for (std::size_t i = 0; i < count; ++i) source.as<std::uint64_t>()[i] = i;
  }

  runtime rt;
  memory_source source;
  std::unique_ptr<memory_source> grains;
  segment s;
  volatile std::uint64_t* words;
  std::size_t count;
};

/// For grains everywhere in so many bytes: pages of records of 16 bytes each, and for each of them half a page of
/// page-table entries.
std::uint64_t bytes_of_tables(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, bytes / (page_bytes / 16 * page_bytes)) * (page_bytes + page_bytes / 2);
}

/// Grains in which each word is its own index, of an array of any size.
struct indices : block_source {
  void load(block_index b, load_part, std::byte* frame, completion done) override { done({}, load_inline(b, frame)); }
  std::uint64_t load_inline(block_index b, std::byte* frame) noexcept override {
    for (std::uint64_t i = 0; i < words_in_grain; ++i)
      reinterpret_cast<std::uint64_t*>(frame)[i] = b * words_in_grain + i;
    return grain_bytes;
  }
  void store(block_index, const std::byte*, completion done) override { done({}, grain_bytes); }
  void store_diff(block_index, const std::byte*, const std::byte*, completion done) override { done({}, 0); }
  bool nothing_to_load(block_index, load_part) const noexcept override { return false; }
};

/// Zeros that arrive when the test says so, and what was stored: the first byte of each grain.
class held_source : public block_source {
 public:
  explicit held_source(std::size_t bytes) : bytes_(bytes) {}
  void load(block_index, load_part, std::byte* frame, completion done) override {
    {
      const std::lock_guard l(mutex_);
      if (holds_) {
        held_.push_back({frame, std::move(done)});
        changed_.notify_all();
        return;
      }
    }
    std::memset(frame, 0, bytes_);
    done({}, bytes_);
  }
  void store(block_index b, const std::byte* frame, completion done) override {
    {
      const std::lock_guard l(mutex_);
      for (std::size_t at = 0; at < bytes_; at += grain_bytes) stored_[(b * bytes_ + at) / grain_bytes] = frame[at];
    }
    done({}, bytes_);
  }
  void store_diff(block_index, const std::byte*, const std::byte*, completion done) override { done({}, 0); }
  bool nothing_to_load(block_index, load_part) const noexcept override { return false; }

  void wait_for(std::size_t loads) {
    std::unique_lock l(mutex_);
    changed_.wait(l, [&] { return held_.size() >= loads; });
  }
  /// What is held ends so, and later loads at once.
  void let_go(const failure& with) {
    std::vector<held> all;
    {
      const std::lock_guard l(mutex_);
      holds_ = false;
      all.swap(held_);
    }
    for (held& h : all) {
      std::memset(h.frame, 0, bytes_);
      h.done(with, with ? 0 : bytes_);
    }
  }
  std::byte stored(block_index grain) {
    const std::lock_guard l(mutex_);
    return stored_[grain];
  }

 private:
  struct held {
    std::byte* frame;
    completion done;
  };
  const std::size_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = true;
  std::vector<held> held_;
  std::map<block_index, std::byte> stored_;
};

/// Of this process, with the kernel's page tables.
std::uint64_t bytes_in_memory() {
  std::uint64_t total = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:") || line.starts_with("VmPTE:")) total += std::stoull(line.substr(6)) * 1024;
  return total;
}

bool there_are_grains() {
  runtime rt({.memory = 1 * mib});
  if (rt.pager().grains().possible()) return true;
  WARN("not run: this kernel has no grains");  // the words that ctest calls a skipped test by
  return false;
}

}  // namespace

TEST_CASE("a touch that belongs to no sweep loads 4 KiB") {
  if (!there_are_grains()) return;
  fixture f;
  std::minstd_rand random(7);
  for (int i = 0; i < 50; ++i) {
    const std::size_t at = random() % f.count;
    REQUIRE(f.words[at] == at);
  }
  CHECK(f.grains->loads <= 50);
  CHECK(f.grains->loads >= 40);
  CHECK(f.source.loads == 0);
  CHECK(f.rt.stats().resident_bytes <= 50 * (grain_bytes + sizeof(frame)) + bytes_of_tables(16 * mib));
}

TEST_CASE("what can be read at once is read by the thread that touches it") {
  if (!there_are_grains()) return;
  fixture f;
  f.source.at_once = true;
  std::minstd_rand random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t at = random() % f.count;
    REQUIRE(f.words[at] == at);
  }
  CHECK(f.grains->loads_now > 1000);
  CHECK(f.grains->loads < f.grains->loads_now / 3);
  const runtime_stats s = f.rt.stats();
  CHECK(s.faults + s.read_ahead_hits + s.hits + s.soft_faults >= f.grains->loads_now);
  CHECK(s.bytes_read >= f.grains->loads_now * grain_bytes);
}

TEST_CASE("a column is read ahead though its first grains are read at once") {
  if (!there_are_grains()) return;
  fixture f;
  f.source.at_once = true;
  const std::size_t row = 3 * words_in_grain;
  for (std::size_t i = 0; i < f.count; i += row) REQUIRE(f.words[i] == i);
  CHECK(testing::soon([&] { return f.rt.stats().read_ahead_hits > f.count / row / 2; }));
}

TEST_CASE("most grains of a column that is read are mapped before they are touched") {
  if (!there_are_grains()) return;
  fixture f;
  const std::size_t row = 3 * words_in_grain;
  for (std::size_t i = 0; i < f.count; i += row) REQUIRE(f.words[i] == i);
  const std::size_t rows = f.count / row;
  CHECK(testing::soon([&] { return f.rt.stats().read_ahead_hits > rows / 2; }));
  const runtime_stats s = f.rt.stats();
  CHECK(s.hits + s.faults < rows / 2);  // touches that were faults
  CHECK(s.read_ahead_hits + s.read_ahead_waste <= s.read_ahead_blocks);
  CHECK(f.s.dirty_blocks() == 0);
}

TEST_CASE("columns that are read and written lose nothing, with more of them in memory than stay") {
  if (!there_are_grains()) return;
  fixture f;
  const std::size_t row = 3 * words_in_grain;
  for (std::size_t column = 0; column < 3; ++column)
    for (std::size_t i = column; i < f.count; i += row) f.words[i] = f.words[i] + 1000;
  CHECK_FALSE(f.s.writeback());
  for (std::size_t i = 0; i < f.count; ++i) REQUIRE(f.source.as<std::uint64_t>()[i] == i + (i % row < 3 ? 1000 : 0));
}

TEST_CASE("what is being mapped ahead of a column is dropped by an invalidation, modified or not") {
  if (!there_are_grains()) return;
  fixture f(64, 4 * mib, 3, 20);
  const std::size_t row = 3 * words_in_grain;
  std::minstd_rand random(static_cast<unsigned>(testing::random_seed("grains: mapped ahead")));
  for (int round = 0; round < 20; ++round) {
    const std::size_t first = random() % (f.count / 2), end = first + random() % (f.count / 2);
    for (std::size_t i = first; i < end; i += row) {
      REQUIRE(f.words[i] == i);
      if (random() % 4 == 0) f.words[i] = i;  // which may be stored before it is dropped
    }
    REQUIRE(f.s.invalidate(true) == segment::invalidated::done);
    if (f.s.writeback()) FAIL("writeback");
  }
  for (std::size_t i = 0; i < f.count; ++i) REQUIRE(f.source.as<std::uint64_t>()[i] == i);
}

TEST_CASE("modified grains are written together, and each by itself where that fails") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  constexpr std::size_t count = 300;
  std::minstd_rand random(3);
  std::vector<std::size_t> at(count);
  for (std::size_t& i : at) {
    i = random() % f.count;
    f.words[i] = i + 1;
  }
  CHECK(f.s.dirty_blocks() > 0);
  const bool fails = GENERATE(false, true);
  if (fails) f.grains->fail_stores = 3;
  CHECK_FALSE(f.s.writeback());
  CHECK(f.s.dirty_blocks() == 0);
  CHECK(f.grains->joint_stores >= count / 32);
  CHECK(f.grains->joint_stores <= count / 16);
  for (const std::size_t i : at) REQUIRE(f.source.as<std::uint64_t>()[i] == i + 1);
}

TEST_CASE("a modified grain that cannot be written is named and stays") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  for (std::size_t g = 0; g < 40; ++g) f.words[g * 2 * words_in_grain] = 1000 + g;
  f.grains->fail_stores = 1000;
  const failure told = f.s.writeback();
  CHECK_THAT(told.what, Catch::Contains("cannot be written"));
  f.grains->fail_stores = 0;
  CHECK_FALSE(f.s.writeback());
  for (std::size_t g = 0; g < 40; ++g) REQUIRE(f.source.as<std::uint64_t>()[g * 2 * words_in_grain] == 1000 + g);
}

TEST_CASE("a sweep loads whole blocks after its first steps") {
  if (!there_are_grains()) return;
  const bool at_once = GENERATE(false, true);
  // The thread that follows the sweep may get no processor while it goes on in grains: then again.
  std::size_t whole = 0, in_grains = 64;
  for (int n = 0; n < 60 && (whole < 62 || in_grains >= 64); ++n) {
    fixture f;
    f.source.at_once = at_once;
    for (std::size_t i = 0; i < f.count; ++i) REQUIRE(f.words[i] == i);
    whole = f.source.loads;
    in_grains = f.grains->loads;
  }
  CHECK(whole >= 62);
  CHECK(in_grains < 64);
}

TEST_CASE("a block that fills up with grains becomes whole and keeps what was written to them") {
  if (!there_are_grains()) return;
  fixture f;
  f.source.at_once = GENERATE(false, true);
  f.s.advise(access_pattern::random);
  for (std::size_t g = 0; g < 64; g += 3) f.words[g * words_in_grain + 5] = 1000 + g;
  for (std::size_t g = 1; g < 64; g += 3) CHECK(f.words[g * words_in_grain] == g * words_in_grain);
  // Touches are looked at several at a time, and a grain that was on its way then is looked at with a later touch.
  std::size_t next = 2;
  CHECK(testing::soon([&] {
    if (next < 64) static_cast<void>(f.words[std::exchange(next, next + 3) * words_in_grain]);
    return f.source.loads == 1;
  }));
  for (std::size_t i = 0; i < words_in_block; ++i) {
    const std::size_t g = i / words_in_grain;
    REQUIRE(f.words[i] == (i % words_in_grain == 5 && g % 3 == 0 ? 1000 + g : i));
  }
  CHECK_FALSE(f.s.writeback());
  for (std::size_t g = 0; g < 64; g += 3) CHECK(f.source.as<std::uint64_t>()[g * words_in_grain + 5] == 1000 + g);
}

TEST_CASE("a block whose other parts cannot be read stays in grains") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  f.source.fail_loads = 1000000;
  for (std::size_t g = 0; g < 64; ++g) {
    f.words[g * words_in_grain] = g;
    REQUIRE(f.words[g * words_in_grain + 1] == g * words_in_grain + 1);
  }
  CHECK(f.source.loads == 1);
  CHECK_FALSE(f.s.writeback());
}

TEST_CASE("what is written to a block that could not be read as its grains arrived reaches the store") {
  held_source blocks(block_bytes), grains(grain_bytes);
  runtime rt({.memory = 16 * mib, .block = block_bytes});
  segment s(rt.pager(), {.name = "a", .block_bytes = block_bytes, .blocks = 16, .grains = &grains, .element_bytes = 8},
            blocks);
  s.advise(access_pattern::random);
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(s.base());
  const std::size_t half = block_bytes / grain_bytes / 2;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < half; ++i)
    threads.emplace_back([&, i] { bytes[block_bytes + i * grain_bytes] = static_cast<unsigned char>(i + 1); });
  grains.wait_for(half);
  blocks.wait_for(1);  // the block is to become whole, and forgets the grains that are on their way
  grains.let_go({});
  blocks.let_go({std::make_error_code(std::errc::io_error), "injected"});
  for (std::thread& t : threads) t.join();
  // The records of a neighbour's grains, on the same page, begin and end.
  bytes[0] = 7;
  const block_range first[] = {{0, 1}};
  REQUIRE_FALSE(s.pin(first, access_mode::read));
  s.unpin(first, access_mode::read);
  CHECK_FALSE(s.writeback());
  CHECK(s.dirty_blocks() == 0);
  std::size_t lost = 0;
  for (std::size_t i = 0; i < half; ++i) {  // by itself, or with its block where that came whole at last
    const block_index grain = 2 * half + i;
    const auto wanted = static_cast<std::byte>(i + 1);
    lost += grains.stored(grain) != wanted && blocks.stored(grain) != wanted;
  }
  CHECK(lost == 0);
}

TEST_CASE("modified grains of a temporary array are not written at the end") {
  memory_source source(16, block_bytes);
  const auto grains = source.in_blocks_of(grain_bytes);
  runtime rt({.memory = 16 * mib, .block = block_bytes});
  segment s(rt.pager(),
            {.name = "t", .block_bytes = block_bytes, .blocks = 16, .temporary = true, .grains = grains.get()}, source);
  s.advise(access_pattern::random);
  reinterpret_cast<volatile unsigned char*>(s.base())[block_bytes] = 1;
  grains->fail_stores = 1;
  CHECK(rt.pager().write_back_all().empty());
  CHECK(grains->fail_stores == 1);
}

TEST_CASE("a block that could not be read becomes whole when it comes in grains again and can be read") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  f.source.fail_loads = 1;
  for (std::size_t g = 0; g < 64; ++g) REQUIRE(f.words[g * words_in_grain] == g * words_in_grain);
  REQUIRE(testing::soon([&] { return f.source.loads == 1; }));
  REQUIRE(f.s.invalidate(false) == segment::invalidated::done);
  for (std::size_t g = 0; g < 64; ++g) REQUIRE(f.words[g * words_in_grain] == g * words_in_grain);
  CHECK(testing::soon([&] { return f.source.loads == 2; }));
}

TEST_CASE("write-back sends modified grains only") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  f.words[3] = 1;
  f.words[17 * words_in_block] = 2;
  CHECK(f.s.dirty_blocks() == 2);
  CHECK_FALSE(f.s.writeback());
  CHECK(f.s.dirty_blocks() == 0);
  CHECK(f.rt.stats().bytes_written == 2 * grain_bytes);
  CHECK(f.source.as<std::uint64_t>()[3] == 1);
  const block_range all[] = {{0, 64}};
  const auto written = f.s.take_written(all);
  REQUIRE(written.size() == 2);
  CHECK(written[0] == block_range{0, 1});
  CHECK(written[1] == block_range{17, 18});
}

TEST_CASE("invalidate forgets grains, and refuses modified ones") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  CHECK(f.words[1] == 1);
  f.source.as<std::uint64_t>()[1] = 77;
  CHECK(f.words[1] == 1);
  CHECK(f.s.invalidate(false) == segment::invalidated::done);
  CHECK(f.words[1] == 77);
  f.words[2] = 5;
  CHECK(f.s.invalidate(false) == segment::invalidated::dirty);
  CHECK(f.words[2] == 5);
  CHECK(f.s.invalidate(true) == segment::invalidated::done);
  CHECK(f.words[2] == 2);
}

TEST_CASE("what is written to grains while others are forgotten is kept, though the block becomes whole meanwhile") {
  if (!there_are_grains()) return;
  constexpr std::size_t in_the_way = 48;  // blocks whose grains are forgotten first
  fixture f(64, 8 * mib, 1, 3000);
  f.source.at_once = true;
  f.source.one_not_at_once_of = ~std::size_t{0};
  std::mt19937_64 random(ooc::testing::random_seed("forgotten and merged grains"));
  for (std::uint64_t round = 0; round < 100; ++round) {
    CAPTURE(round);
    for (std::size_t block = 0; block < in_the_way; ++block)
      for (int i = 0; i < 8; ++i) (void)f.words[block * words_in_block + random() % words_in_block];
    const std::size_t block = in_the_way + random() % (64 - in_the_way);
    std::vector<std::size_t> order(block_bytes / grain_bytes);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    const std::size_t at = block * words_in_block + order[random() % 8] * words_in_grain;
    std::atomic<bool> begins{false};
    std::thread forgets([&] {
      begins = true;
      f.s.invalidate(false);
    });
    while (!begins) std::this_thread::yield();
    ooc::testing::random_pause(std::chrono::microseconds(random() % 300));
    f.words[at] = ~round;
    for (std::size_t i = 0; i < 48; ++i) (void)f.words[block * words_in_block + order[i] * words_in_grain];
    forgets.join();
    REQUIRE(f.words[at] == ~round);
    REQUIRE_FALSE(f.s.writeback());
  }
}

TEST_CASE("a pin and a promise make a block whole that was in grains") {
  if (!there_are_grains()) return;
  fixture f;
  f.s.advise(access_pattern::random);
  f.words[7] = 70;
  const block_range first[] = {{0, 1}};
  REQUIRE_FALSE(f.s.pin(first, access_mode::write));
  CHECK(f.words[7] == 70);
  CHECK(f.words[8] == 8);
  f.words[8] = 80;
  f.s.unpin(first, access_mode::write);
  CHECK(f.words[words_in_block + 1] == words_in_block + 1);
  f.words[words_in_block + 1] = 11;
  const block_range second[] = {{1, 2}};
  f.s.promise(second);
  CHECK(f.source.as<std::uint64_t>()[words_in_block + 1] == 11);  // written before it was promised
  f.words[words_in_block + 2] = 12;
  CHECK_FALSE(f.s.writeback());
  CHECK(f.source.as<std::uint64_t>()[7] == 70);
  CHECK(f.source.as<std::uint64_t>()[8] == 80);
}

TEST_CASE("a walk down a column is read ahead of, and the next column is in memory") {
  if (!there_are_grains()) return;
  fixture f(512, 8 * mib);
  const std::size_t row = 20 * words_in_grain + 40;
  const std::size_t rows = f.count / row;
  for (std::size_t c = 0; c < 4; ++c)
    for (std::size_t r = 0; r < rows; ++r) REQUIRE(f.words[r * row + c] == r * row + c);
  const runtime_stats n = f.rt.stats();
  CHECK(n.read_ahead_hits > rows / 2);
  CHECK(f.grains->loads < rows + rows / 4);
}

TEST_CASE("the tables of grains come off the memory, and back when the grains have left") {
  if (!there_are_grains()) return;
  fixture f;
  for (std::size_t i = 0; i < f.count; i += 2 * words_in_block) f.words[i] = i;
  // Reading ahead may have brought more.
  CHECK(f.rt.stats().resident_bytes >= 32 * (grain_bytes + sizeof(frame)) + bytes_of_tables(16 * mib));
  CHECK_FALSE(f.s.writeback());
  const block_range first[] = {{0, 4}};
  CHECK_FALSE(f.s.pin(first, access_mode::read));  // whole: they need no tables
  f.s.unpin(first, access_mode::read);
  const block_range rest[] = {{4, 64}};
  const auto emptied = [&] {
    (void)f.s.invalidate(rest, true);  // what is on its way in is dropped on arrival
    return f.rt.stats().resident_bytes == 4 * block_bytes;
  };
  CHECK(testing::soon(emptied));
}

TEST_CASE("an array many times the memory, touched at random, takes no more for its tables than they are counted for") {
  if (!there_are_grains()) return;
  const std::uint64_t blocks = 4096, words_between = 2 * mib / 8;
  indices source;
  runtime rt({.memory = 16 * mib, .block = 2 * mib});
  segment s(rt.pager(), {.name = "a", .block_bytes = 2 * mib, .blocks = blocks, .grains = &source, .element_bytes = 8},
            source);
  s.advise(access_pattern::random);
  const std::uint64_t before = bytes_in_memory();
  const auto* const words = reinterpret_cast<volatile std::uint64_t*>(s.base());
  std::size_t wrong = 0;
  std::uint64_t most = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t at = (i * 1237 % blocks) * words_between + i % words_between;
      wrong += words[at] != at;
      most = std::max(most, rt.stats().resident_bytes);
    }
  CHECK(wrong == 0);
  CHECK(most <= 16 * mib);
  // By userfaultfd alone, the kernel keeps a page of page-table entries for each 2 MiB that was ever touched.
  const std::uint64_t kept = rt.pager().grains().apart() ? 0 : blocks * grain_bytes;
  if constexpr (testing::resident_per_byte == 1)  // else there are those of ThreadSanitizer for each
    CHECK(bytes_in_memory() - before <= 16 * mib + 4 * mib + kept);
}

TEST_CASE("random programs over blocks in grains and whole ones lose nothing") {
  if (!there_are_grains()) return;
  const auto seed = static_cast<unsigned>(testing::random_seed("grains"));
  constexpr unsigned threads = 3;
  fixture f(48, 4 * mib, 2, 100);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> all;
  all.emplace_back([&] {
    std::minstd_rand random(seed + 99);
    while (!stop) {
      const block_index b = random() % 48;
      const block_range one[] = {{b, b + 1}};
      switch (random() % 4) {
        case 0:
          if (f.s.writeback()) wrong += 1000000;
          break;
        case 1: {
          const access_mode m = random() % 2 ? access_mode::write : access_mode::read;
          if (!f.s.pin(one, m)) f.s.unpin(one, m);
          break;
        }
        case 2:
          (void)f.s.invalidate(one, false);  // stays where it is modified
          break;
        default: f.s.prefetch(one);
      }
      let_pass(std::chrono::microseconds(300));
    }
  });
  std::vector<std::thread> writers;
  for (unsigned t = 0; t < threads; ++t)
    writers.emplace_back([&, t] {
      std::minstd_rand random(seed + t);
      std::vector<std::uint64_t> model(f.count / threads + 1);
      const std::size_t mine = (f.count - t + threads - 1) / threads;
      for (std::size_t k = 0; k < mine; ++k) model[k] = k * threads + t;
      const auto touch = [&](std::size_t k) {
        volatile std::uint64_t& x = f.words[k * threads + t];
        if (random() % 2)
          x = model[k] = random();
        else if (x != model[k])
          ++wrong;
      };
      const unsigned operations = std::getenv("OOC_TEST_LONG") ? 30000 : 1500;
      for (unsigned op = 0; op < operations; ++op) {
        const std::size_t k = random() % mine;
        switch (random() % 8) {
          case 0:  // a run
            for (std::size_t i = k; i < std::min(k + 3000, mine); ++i) touch(i);
            break;
          case 1:  // a walk down a column
            for (std::size_t i = k % 4000; i < mine; i += 4000) touch(i);
            break;
          case 2:  // a crowd
            for (int i = 0; i < 40; ++i) touch(std::min(k / 11000 * 11000 + random() % 11000, mine - 1));
            break;
          default: touch(k);
        }
      }
      for (std::size_t k = 0; k < mine; ++k)
        if (f.words[k * threads + t] != model[k]) ++wrong;
    });
  for (auto& t : writers) t.join();
  stop = true;
  for (auto& t : all) t.join();
  CHECK(wrong == 0);
  CHECK_FALSE(f.s.writeback());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < f.count; ++i) differ += f.source.as<std::uint64_t>()[i] != f.words[i];
  CHECK(differ == 0);
  const auto emptied = [&] {
    (void)f.s.invalidate(true);
    return f.rt.stats().resident_bytes == 0;
  };
  CHECK(testing::soon(emptied));
}

TEST_CASE("blocks that come one after the other and are hardly touched are not swept") {
  grain_choice c;
  std::uint64_t ran = 0;
  const auto sparse_after = [&](std::uint64_t ns_each, int blocks) {
    bool found = false;
    for (int i = 0; i < blocks; ++i) {
      c.mapped_whole(2_MiB, ran += ns_each);
      found |= c.hardly_touched();
    }
    return found;
  };
  CHECK_FALSE(sparse_after(100'000, 100));  // 20 bytes a nanosecond
  CHECK_FALSE(sparse_after(15'000, 100));   // an eighth of it
  CHECK(sparse_after(2'000, 12));
  CHECK_FALSE(sparse_after(400'000, 1));  // four sweeps side by side
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(sparse_after(500, 3));
    CHECK_FALSE(sparse_after(400'000, 1));
  }
}

TEST_CASE("a walk down a column that comes after a sweep is not taken for one", "[clock]") {
  if (!there_are_grains()) return;
  // In small blocks the time between two faults would tell little on a busy machine.
  fixture f(48, 16 * mib, 0, 0, 2 * mib);
  for (std::size_t i = 0; i < f.count / 2; ++i) static_cast<void>(f.words[i]);
  // 8 rows in a block.  64 of them lie in an eighth of its grains and take as long to touch as an eighth of it to read,
  // which is where grain_choice draws the line.
  const std::size_t row = 64 * words_in_grain;
  // A machine that is busy gives the program time to touch that it has not had: then again.
  std::size_t loads = 48;
  for (int n = 0; n < 60 && loads > 8; ++n) {
    const std::size_t before = f.source.loads;
    for (std::size_t i = 0; i < f.count; i += row) static_cast<void>(f.words[i + static_cast<std::size_t>(n)]);
    loads = f.source.loads - before;
  }
  CHECK(loads <= 8);
}

TEST_CASE("a loop that reads grains and then writes them has one fault for each, and loses nothing") {
  if (!there_are_grains()) return;
  fixture f(256, 8 * mib);
  std::minstd_rand random(11);
  std::vector<std::uint64_t> expected(f.count);
  for (std::size_t i = 0; i < f.count; ++i) expected[i] = i;
  const auto update = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::size_t at = random() % f.count;
      f.words[at] = f.words[at] + 1;
      ++expected[at];
    }
  };
  update(2000);
  const std::uint64_t before = f.rt.stats().write_faults;
  update(4000);
  CHECK(f.rt.stats().write_faults - before < 2000);
  CHECK_FALSE(f.s.writeback());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < f.count; ++i) differ += f.source.as<std::uint64_t>()[i] != expected[i];
  CHECK(differ == 0);

  const auto read = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::size_t at = random() % f.count;
      REQUIRE(f.words[at] == expected[at]);
    }
  };
  read(8000);
  CHECK_FALSE(f.s.writeback());
  const std::uint64_t written = f.rt.stats().bytes_written;
  read(1000);
  CHECK_FALSE(f.s.writeback());
  CHECK(f.rt.stats().bytes_written == written);  // what is read only is not taken for modified any more
}

TEST_CASE("grains that were only read since they were written back are no modified ones") {
  if (!there_are_grains()) return;
  fixture f(256, 8 * mib);
  std::minstd_rand random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t at = random() % f.count;
    f.words[at] = f.words[at] + 1;
  }
  CHECK_FALSE(f.s.writeback());
  for (int i = 0; i < 20; ++i) static_cast<void>(f.words[random() % f.count]);
  CHECK(f.s.dirty_blocks() == 0);
  CHECK(f.s.invalidate(false) == segment::invalidated::done);
}
