// How a collective transfer is cut into windows, which way it goes, and which overlaps are found.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "storage/collective/collective_buffer.hpp"
#include "storage/collective/overlaps.hpp"
#include "storage/collective/rank_messages.hpp"
#include "storage/collective/strategy.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using testing::between;

namespace {

/// Columns of `width` bytes in rows of `row` bytes.
request columns(std::uint64_t first, std::uint64_t width, std::uint64_t row, std::uint64_t rows) {
  request r;
  r.add({.file_offset = first,
         .run = width,
         .depth = 1,
         .levels = {{{.count = rows, .file_step = row, .memory_step = width}}}});
  return r;
}

std::vector<request> interleaved(std::uint64_t ranks, std::uint64_t width, std::uint64_t rows) {
  std::vector<request> all;
  for (std::uint64_t r = 0; r < ranks; ++r) all.push_back(columns(r * width, width, ranks * width, rows));
  return all;
}

request random_request(std::mt19937_64& g) {
  request r;
  for (std::uint64_t entries = between(g, 0, 3); entries > 0; --entries) {
    nested_request n{.file_offset = between(g, 0, 100000),
                     .memory_offset = between(g, 0, 1000),
                     .run = between(g, 1, between(g, 1, 9000)),
                     .depth = static_cast<std::uint32_t>(between(g, 0, 2))};
    for (std::uint32_t l = 0; l < n.depth; ++l)
      n.levels[l] = {between(g, 1, 9), between(g, 0, 20000), between(g, 0, 20000)};
    r.add(n);
  }
  return r;
}

}  // namespace

TEST_CASE("short regions of several ranks are exchanged, long or separate ones are not") {
  const auto choose = [](std::span<const request> wanted) {
    return choose_strategy(access_kind::read, wanted, locality::none);
  };
  CHECK(choose(interleaved(4, 64, 1000)) == strategy::two_phase);
  CHECK(choose(interleaved(2, 4096, 1000)) == strategy::two_phase);
  CHECK(choose(interleaved(4, 4 << 20, 4)) == strategy::independent);
  CHECK(choose(interleaved(1, 64, 1000)) == strategy::independent);
  std::vector<request> apart;
  for (std::uint64_t r = 0; r < 4; ++r) apart.push_back(columns(r * 1000000, 64, 256, 1000));
  CHECK(choose(apart) == strategy::independent);
  CHECK(choose(std::vector<request>(4)) == strategy::independent);
  std::vector<request> only_one(4);
  only_one[2] = columns(0, 64, 256, 1000);
  CHECK(choose(only_one) == strategy::independent);
}

TEST_CASE("the farther the nodes, the shorter the regions that are exchanged; over a network none") {
  const auto regions = interleaved(4, 4096, 1000);
  CHECK(choose_strategy(access_kind::write, regions, locality::none) == strategy::two_phase);
  CHECK(choose_strategy(access_kind::write, regions, locality::host) == strategy::two_phase);
  CHECK(choose_strategy(access_kind::read, regions, locality::host) == strategy::independent);
  CHECK(choose_strategy(access_kind::read, interleaved(4, 64, 1000), locality::host) == strategy::two_phase);
  CHECK(choose_strategy(access_kind::write, interleaved(4, 64, 1000), locality::network) == strategy::independent);
}

TEST_CASE("nodes in the process: writes are exchanged up to longer regions than reads") {
  const auto regions = interleaved(4, 512 << 10, 16);
  CHECK(choose_strategy(access_kind::write, regions, locality::none) == strategy::two_phase);
  CHECK(choose_strategy(access_kind::read, regions, locality::none) == strategy::independent);
  CHECK(choose_strategy(access_kind::read, interleaved(4, 32 << 10, 16), locality::none) == strategy::two_phase);
  CHECK(choose_strategy(access_kind::write, interleaved(4, 4 << 20, 4), locality::none) == strategy::independent);
}

TEST_CASE("a few bytes far out in a large file take few windows") {
  std::vector<request> wanted;
  for (std::uint64_t r = 0; r < 2; ++r) wanted.push_back(request::contiguous((std::uint64_t{9} << 40) + r * 100, 100));
  const exchange_plan p = plan_exchange(wanted, {.sn = 0, .nn = 2, .sf = 65536}, 16 << 20);
  CHECK(p.rounds.size() == 1);
  CHECK(p.last_round < (1 << 24));
  CHECK(p.window < (4 << 20));
}

TEST_CASE("windows hold every region once, and rounds without any are left out") {
  const std::uint64_t seed = testing::random_seed("exchange windows");
  std::mt19937_64 g(seed);
  for (int n = 0; n < 300; ++n) {
    INFO("OOC_TEST_SEED=" << seed << ", case " << n);
    std::vector<request> wanted(between(g, 1, 5));
    for (request& r : wanted) r = random_request(g);
    const striping s{.sn = 0, .nn = static_cast<std::uint32_t>(between(g, 1, 3)), .sf = 4096};
    const exchange_plan plan = plan_exchange(wanted, s, between(g, 1, 400000));
    CHECK(plan.window % 4096 == 0);
    for (const request& r : wanted) {
      std::multimap<std::uint64_t, std::uint64_t> expected, found;  // bytes: file -> memory
      r.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
        for (std::uint64_t i = 0; i < length; i += 1 + i % 97) expected.emplace(file + i, memory + i);
      });
      std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> all;
      std::uint64_t bytes = 0;
      for (const std::uint32_t round : plan.rounds)
        for (std::uint64_t rank = 0; rank < plan.ranks; ++rank) {
          std::vector<region> regions;
          plan.regions_in_window(r, round, rank, regions);
          for (const region& p : regions) {
            bytes += p.length;
            CHECK(p.node_end() <= plan.window);
            all[{plan.window_begin(round, rank) + p.node_offset, p.memory_offset}] += p.length;
          }
        }
      CHECK(bytes == r.bytes());
      std::size_t missing = 0;
      for (const auto& [file, memory] : expected) {
        bool there = false;
        for (auto at = all.upper_bound({file, ~std::uint64_t{0}}); !there && at != all.begin();) {
          --at;
          there = file - at->first.first < at->second && memory - at->first.second == file - at->first.first;
          if (file - at->first.first > plan.window) break;
        }
        missing += !there;
      }
      CHECK(missing == 0);
    }
    for (const std::uint32_t round : plan.rounds) {
      std::size_t regions_in_round = 0;
      for (const request& r : wanted)
        for (std::uint64_t rank = 0; rank < plan.ranks; ++rank) {
          std::vector<region> regions;
          plan.regions_in_window(r, round, rank, regions);
          regions_in_round += regions.size();
        }
      CHECK(regions_in_round > 0);
    }
  }
}

TEST_CASE("an overlap of two ranks, or of one with itself, is found wherever it lies") {
  const std::uint64_t seed = testing::random_seed("overlaps");
  std::mt19937_64 g(seed);
  for (int n = 0; n < 300; ++n) {
    INFO("OOC_TEST_SEED=" << seed << ", case " << n);
    std::vector<request> wanted(between(g, 1, 4));
    std::vector<std::uint16_t> owners(700000);
    bool overlaps = false;
    for (request& r : wanted) {
      if (between(g, 0, 1) == 0)
        r = columns(between(g, 0, 50000), between(g, 1, 9), 4000, 20);
      else
        r = random_request(g);
      r.for_each_run([&](std::uint64_t file, std::uint64_t, std::uint64_t length) {
        for (std::uint64_t i = file; i < file + length; ++i) overlaps |= owners.at(i)++ != 0;
      });
    }
    const exchange_plan plan = plan_exchange(wanted, {.sn = 0, .nn = 2, .sf = 4096}, 100000);
    bool found = false;
    for (std::uint64_t rank = 0; rank < wanted.size(); ++rank)
      if (const auto s = find_overlap(plan, wanted, rank)) {
        found = true;
        for (std::uint64_t i = s->offset; i < s->offset + s->length; ++i) CHECK(owners[i] > 1);
      }
    CHECK(found == overlaps);
  }
}

TEST_CASE("regular regions of a window are one entry, and gaps that are read anyway none") {
  std::vector<std::vector<region>> by_rank(2);
  for (std::uint64_t i = 0; i < 100; ++i) {
    by_rank[0].push_back({i * 256, i * 64, 64});
    by_rank[1].push_back({i * 256 + 64, i * 64, 64});
  }
  const request exact = request_of(by_rank, 8192);
  REQUIRE(exact.entries().size() == 1);
  CHECK(exact.bytes() == 100 * 128);
  CHECK(exact.entries()[0].file_offset == 8192);
  CHECK(exact.entries()[0].run == 128);
  CHECK(exact.entries()[0].levels[0] == stride_level{100, 256, 256});
  const request with_gaps = request_with_gaps(by_rank, 8192);
  REQUIRE(with_gaps.entries().size() == 1);
  CHECK(with_gaps.entries()[0].run == 99 * 256 + 128);
}

TEST_CASE("a request survives its journey to another rank") {
  const std::uint64_t seed = testing::random_seed("request bytes");
  std::mt19937_64 g(seed);
  for (int n = 0; n < 100; ++n) {
    const request r = random_request(g);
    const std::vector<std::byte> told = encode({.wanted = r, .nodes = locality::none, .size = 7});
    const rank_request heard = decode_rank_request(told);
    const request& back = heard.wanted;
    CHECK(heard.size == 7);
    const auto runs = [](const request& q) {
      std::vector<std::uint64_t> all;
      q.for_each_run([&](std::uint64_t f, std::uint64_t m, std::uint64_t l) { all.insert(all.end(), {f, m, l}); });
      return all;
    };
    CHECK(runs(back) == runs(r));
    CHECK_THROWS_AS(decode_rank_request(std::span(told).first(told.size() - 1)), integrity_error);
  }
}
