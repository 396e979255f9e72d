// How much is written for what is evicted, where an array nearly fits in memory and is updated in place.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>

#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"
#include "support/memory_source.hpp"
#include "support/pager_words.hpp"

using namespace ooc;
using namespace ooc::detail;
using ooc::test::memory_source;
using ooc::testing::mib;

namespace {

const std::uint64_t budget = 8 * mib;
const std::size_t bytes_of_block = 64 * page_bytes;

/// An array of `1 / ratio` times the memory, which is used by `next`, a function that gives the next element.
struct updated_array {
  explicit updated_array(double ratio, bool in_grains)
      : blocks(static_cast<std::size_t>(std::ceil(static_cast<double>(budget) / ratio / bytes_of_block))),
        rt({.memory = budget, .block = bytes_of_block}),
        source(blocks, bytes_of_block, 2),
        grains(source.in_blocks_of(grain_bytes)),
        s(rt.pager(),
          {.name = "a",
           .block_bytes = bytes_of_block,
           .blocks = blocks,
           .grains = in_grains ? grains.get() : nullptr,
           .element_bytes = 8},
          source),
        words(reinterpret_cast<std::uint64_t*>(s.base())),
        count(blocks * bytes_of_block / 8) {
    source.at_once = true;
  }
  template <class F>
  void update(int times, F next) {
    for (int i = 0; i < times; ++i) {
      volatile std::uint64_t& word = words[next()];
      word = word + 1;
    }
  }

  std::size_t blocks;
  runtime rt;
  memory_source source;
  std::unique_ptr<memory_source> grains;
  segment s;
  volatile std::uint64_t* words;
  std::size_t count;
};

/// Elements at random; element k as often as 1 / (k + 1) says, and the often used ones far apart; down one column
/// after the other.
enum class order { random, zipf, columns };

class next_element {
 public:
  next_element(order o, std::size_t count) : order_(o), count_(count) {}
  std::size_t operator()() {
    switch (order_) {
      case order::random: return random_() % count_;
      case order::zipf: {
        const double u = std::generate_canonical<double, 32>(random_);
        const auto rank = static_cast<std::size_t>(std::pow(static_cast<double>(count_), u)) - 1;
        return rank * 100'003 % count_;
      }
      case order::columns: break;
    }
    const std::size_t row = 8 * grain_bytes / 8;
    at_ += row;
    if (at_ >= count_) at_ = (at_ % row + 64) % row;
    return at_;
  }

 private:
  const order order_;
  const std::size_t count_;
  std::minstd_rand random_{17};
  std::size_t at_ = 0;
};

}  // namespace

TEST_CASE("updates of an array that nearly fits in memory write little more than is evicted") {
  const order how = GENERATE(order::random, order::zipf, order::columns);
  const double ratio = GENERATE(0.5, 0.8, 0.95, 1.05);
  const bool in_grains = GENERATE(true, false);
  CAPTURE(static_cast<int>(how), ratio, in_grains);
  updated_array a(ratio, in_grains);
  next_element next(how, a.count);
  const int updates = in_grains ? 30'000 : 3'000;
  a.update(updates, next);  // until memory is full
  const runtime_stats before = a.rt.stats();
  a.update(updates, next);
  const runtime_stats after = a.rt.stats();
  const std::uint64_t evicted = after.bytes_evicted - before.bytes_evicted;
  const std::uint64_t written = after.bytes_written - before.bytes_written;
  CAPTURE(evicted, written, after.evictions - before.evictions, after.soft_faults - before.soft_faults);
  // A miss that finds nothing clean has a block written, which may be a whole one.  Of 16 blocks that have aged, those
  // that leave next are also those that a walk comes back to first.
  const std::uint64_t for_nothing = in_grains ? evicted / 2 : evicted;
  CHECK(written <= evicted + for_nothing + budget / 2);
  CHECK_FALSE(a.s.writeback());
}
