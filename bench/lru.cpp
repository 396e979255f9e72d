// The replacement against exact LRU: misses of the real pager on traces of block touches, divided by
// those of an exact LRU list with as many frames.  Nothing is transferred and read-ahead is off.
//
//     jacobi          sweeps of a five-point stencil over two arrays, row by row
//     gauss_seidel    block rows of a matrix, and the whole solution vector for each
//     columns         walks down the columns of a matrix whose rows are blocks
//     zipf            blocks drawn at random, block k with probability ~ 1 / k
//     random          blocks drawn at random, all alike
//
// grains_... are the same for grains, 4 KiB, which age many at a time, in a memory of as many as the budget holds. Four
// of a block are touched, so that none becomes whole.
//
// Hits on mapped blocks are invisible to the pager and to the trace; that is what is tested.
#include <algorithm>
#include <functional>
#include <list>
#include <random>
#include <unordered_map>
#include <vector>

#include "measure/child.hpp"
#include "measure/empty_source.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/runtime.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/segment.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using ooc::detail::segment;

constexpr std::uint64_t block_bytes = 64_KiB;
constexpr std::uint64_t frames = 256;

using trace = std::vector<std::uint32_t>;

trace jacobi_trace(std::uint32_t blocks) {
  trace t;
  const std::uint32_t half = blocks / 2;
  constexpr int rows_in_block = 4;
  for (int sweep = 0; sweep < 6; ++sweep) {
    const std::uint32_t a = sweep % 2 ? half : 0, b = half - a;
    for (std::uint32_t i = 1; i + 1 < half * rows_in_block; ++i)
      for (const std::uint32_t at :
           {a + (i - 1) / rows_in_block, a + (i + 1) / rows_in_block, a + i / rows_in_block, b + i / rows_in_block})
        t.push_back(at);
  }
  return t;
}

trace gauss_seidel_trace(std::uint32_t blocks) {
  trace t;
  const std::uint32_t vector = std::max(blocks / 16, 1u);  // the solution; behind it the matrix
  for (int sweep = 0; sweep < 4; ++sweep)
    for (std::uint32_t m = vector; m < blocks; ++m) {
      t.push_back(m);
      for (std::uint32_t x = 0; x < vector; ++x) t.push_back(x);
    }
  return t;
}

trace column_trace(std::uint32_t blocks) {
  trace t;
  for (int column = 0; column < 12; ++column)
    for (std::uint32_t row = 0; row < blocks; ++row) t.push_back(row);
  return t;
}

trace zipf_trace(std::uint32_t blocks, std::uint64_t seed) {
  std::vector<double> weight;
  for (std::uint32_t k = 1; k <= blocks; ++k) weight.push_back(1.0 / k);
  std::discrete_distribution<std::uint32_t> rank(weight.begin(), weight.end());
  std::mt19937_64 random(seed);
  trace t(40'000);
  for (std::uint32_t& b : t) b = rank(random) * 7919u % blocks;  // spread over the segment
  return t;
}

trace random_trace(std::uint32_t blocks, std::uint64_t seed) {
  std::uniform_int_distribution<std::uint32_t> block(0, blocks - 1);
  std::mt19937_64 random(seed);
  trace t(40'000);
  for (std::uint32_t& b : t) b = block(random);
  return t;
}

std::uint64_t exact_lru_misses(const trace& t, std::uint64_t memory) {
  std::list<std::uint32_t> order;  // the latest first
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> where;
  std::uint64_t misses = 0;
  for (const std::uint32_t b : t) {
    if (const auto found = where.find(b); found != where.end()) {
      order.splice(order.begin(), order, found->second);
      continue;
    }
    ++misses;
    if (order.size() == memory) {
      where.erase(order.back());
      order.pop_back();
    }
    order.push_front(b);
    where[b] = order.begin();
  }
  return misses;
}

struct outcome {
  std::uint64_t misses;
  std::uint64_t memory;  ///< blocks or grains that were in it at the end
};

outcome run_trace(ooc::runtime& rt, const trace& t, std::uint32_t pieces, bool in_grains) {
  const std::uint64_t in_block = in_grains ? 4 : 1;
  empty_source source(in_grains), grains(in_grains);
  segment s(rt.pager(),
            {.name = "lru",
             .block_bytes = block_bytes,
             .blocks = (pieces + in_block - 1) / in_block,
             .grains = in_grains ? &grains : nullptr,
             .element_bytes = 8},
            source);
  s.advise(ooc::access_pattern::random);
  const ooc::runtime_stats begin = rt.stats();
  for (const std::uint32_t b : t) read_word(s.base() + b * (block_bytes / in_block));
  const ooc::runtime_stats end = rt.stats();
  const std::uint64_t misses = end.hits - begin.hits + end.faults - begin.faults;  // of blocks nothing is loaded: hits
  return {misses, misses - (end.evictions - begin.evictions)};
}

}  // namespace

json run_lru(const options& o) {
  return in_child(0, [&] {
    const std::pair<const char*, std::function<trace(std::uint32_t, unsigned)>> traces[] = {
        {"jacobi_ratio", [](std::uint32_t n, unsigned) { return jacobi_trace(n); }},
        {"gauss_seidel_ratio", [](std::uint32_t n, unsigned) { return gauss_seidel_trace(n); }},
        {"columns_ratio", [](std::uint32_t n, unsigned) { return column_trace(n); }},
        {"zipf_ratio", [](std::uint32_t n, unsigned k) { return zipf_trace(n, k + 1); }},
        {"random_ratio", [](std::uint32_t n, unsigned k) { return random_trace(n, k + 1); }},
    };
    json out;
    double worst = 0;
    for (const bool in_grains : {false, true}) {
      const std::uint64_t budget = in_grains ? 2_MiB : frames * block_bytes;
      // A grain takes a descriptor and a part of a table beside its bytes.
      const std::uint64_t memory = in_grains ? budget / (ooc::detail::grain_bytes * 17 / 16) : frames;
      ooc::runtime rt{ooc::runtime_options{.memory = budget, .block = block_bytes, .read_ahead = 1}};
      for (const auto& [plain_name, make] : traces) {
        const std::string name = (in_grains ? "grains_" : "") + std::string(plain_name);
        paired_ratio r(name);
        for (unsigned k = 0; k < o.rounds_or(3); ++k)
          for (const double times : {1.25, 2.0, 4.0, 8.0}) {  // segment / memory
            const auto pieces = static_cast<std::uint32_t>(times * static_cast<double>(memory));
            const trace t = make(pieces, k);
            const outcome ours = run_trace(rt, t, pieces, in_grains);
            r.add(static_cast<double>(ours.misses), static_cast<double>(exact_lru_misses(t, ours.memory)));
          }
        r.put(out);
        worst = std::max(worst, out[name + "_max"].get<double>());
      }
    }
    out["worst_ratio"] = worst;
    out["frames"] = frames;
    return out;
  });
}

}  // namespace bench
