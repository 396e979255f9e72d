#include "storage/layout/regions.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <numeric>

#include "storage/layout/io_part.hpp"
#include "support/random_seed.hpp"

using ooc::nested_request;
using ooc::request;
using ooc::striping;
using ooc::storage::byte_range;
using ooc::storage::chunk_size;
using ooc::storage::even_ranges;
using ooc::storage::region;
using ooc::testing::between;

namespace {

std::vector<region> regions_on(const request& r, const striping& s, std::uint32_t stripe_index) {
  std::vector<region> out;
  ooc::storage::object_regions(r, s, stripe_index, out);
  return out;
}

std::uint64_t bytes(const std::vector<region>& regions) {
  return std::accumulate(regions.begin(), regions.end(), std::uint64_t{0},
                         [](std::uint64_t n, const region& p) { return n + p.length; });
}

// Byte by byte: (node offset, memory offset), sorted, of what lies on the node.
std::vector<std::pair<std::uint64_t, std::uint64_t>> model(const request& r, const striping& s,
                                                           std::uint32_t stripe_index) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  r.for_each_run([&](std::uint64_t f, std::uint64_t m, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if ((f + i) / s.sf % s.nn == stripe_index) out.emplace_back((f + i) / s.sf / s.nn * s.sf + (f + i) % s.sf, m + i);
  });
  std::sort(out.begin(), out.end());
  return out;
}

void check_against_model(const request& r, const striping& s) {
  for (std::uint32_t stripe_index = 0; stripe_index < s.nn; ++stripe_index) {
    const std::vector<region> regions = regions_on(r, s, stripe_index);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const region& p = regions[i];
      REQUIRE(p.length > 0);
      if (i > 0) {
        REQUIRE(regions[i - 1].node_offset <= p.node_offset);
        const bool touch = regions[i - 1].node_end() == p.node_offset &&
                           regions[i - 1].memory_offset + regions[i - 1].length == p.memory_offset;
        REQUIRE_FALSE(touch);
      }
      for (std::uint64_t b = 0; b < p.length; ++b) found.emplace_back(p.node_offset + b, p.memory_offset + b);
    }
    std::sort(found.begin(), found.end());
    REQUIRE(found == model(r, s, stripe_index));
  }
}

}  // namespace

TEST_CASE("bytes per node of the papers' request on four nodes") {
  const request r = request::strided({400, 300, 500, 2, 800, 400});
  const striping s{0, 4, 512};
  CHECK(bytes(regions_on(r, s, 0)) == 364);
  CHECK(bytes(regions_on(r, s, 1)) == 612);
  CHECK(bytes(regions_on(r, s, 2)) == 476);
  CHECK(bytes(regions_on(r, s, 3)) == 248);
}

TEST_CASE("bytes per node of a file of 54,000 bytes") {
  const striping a{0, 4, 4096};
  CHECK(a.object_size(0, 54000) == 16384);
  CHECK(a.object_size(1, 54000) == 13040);
  CHECK(a.object_size(2, 54000) == 12288);
  CHECK(a.object_size(3, 54000) == 12288);
  const striping b{1, 2, 8000};
  CHECK(b.object_size(0, 54000) == 30000);  // node 1
  CHECK(b.object_size(1, 54000) == 24000);  // node 2
  CHECK(b.node_of(0, 4) == 1);
  CHECK(b.node_of(8000, 4) == 2);
  CHECK(b.node_of(16000, 4) == 1);
  for (const striping& s : {a, b})
    for (std::uint32_t stripe_index = 0; stripe_index < s.nn; ++stripe_index)
      CHECK(bytes(regions_on(request::contiguous(0, 54000), s, stripe_index)) == s.object_size(stripe_index, 54000));
}

TEST_CASE("regions of block (2, 0) of the papers' matrix") {
  const request r = request::strided({2000, 0, 1000, 3, 6000, 0});
  const striping a{0, 4, 4096};
  CHECK(bytes(regions_on(r, a, 0)) == 1000);
  CHECK(bytes(regions_on(r, a, 1)) == 192);
  CHECK(bytes(regions_on(r, a, 2)) == 808);
  CHECK(bytes(regions_on(r, a, 3)) == 1000);
  const striping b{1, 2, 8000};
  CHECK(bytes(regions_on(r, b, 0)) == 1000);
  CHECK(bytes(regions_on(r, b, 1)) == 2000);
}

TEST_CASE("regions of block (2, 1) of the papers' matrix") {
  const request r = request::strided({20000, 0, 1000, 3, 6000, 0});
  const striping a{0, 4, 4096};
  // These two touch on the node, where they are one run of 712 bytes, but not in memory.
  CHECK(regions_on(r, a, 0) == std::vector<region>{{7712, 0, 480}, {8192, 2768, 232}});
  CHECK(ooc::storage::node_runs(regions_on(r, a, 0)) == 1);
  CHECK(regions_on(r, a, 1) == std::vector<region>{{4096, 480, 520}});
  CHECK(regions_on(r, a, 2) == std::vector<region>{{5520, 1000, 1000}});
  CHECK(regions_on(r, a, 3) == std::vector<region>{{7424, 2000, 768}});
  const striping b{1, 2, 8000};
  CHECK(regions_on(r, b, 0) == std::vector<region>{{12000, 0, 1000}, {16000, 2000, 1000}});
  CHECK(regions_on(r, b, 1) == std::vector<region>{{10000, 1000, 1000}});
}

TEST_CASE("every small strided request on every small striping, byte by byte") {
  for (std::uint32_t nn = 1; nn <= 3; ++nn)
    for (std::uint64_t sf : {1, 2, 3, 5, 8})
      for (std::uint64_t gs = 1; gs <= 4; ++gs)
        for (std::uint64_t gc = 0; gc <= 4; ++gc)
          for (std::uint64_t sd = gs; sd <= 9; ++sd)
            for (std::uint64_t fs = 0; fs <= gs; fs += 2)
              for (std::uint64_t ls = 0; ls <= gs; ls += 3)
                check_against_model(request::strided({sf / 2, fs, gs, gc, sd, ls}), striping{0, nn, sf});
}

TEST_CASE("random lists of nested requests on random stripings, byte by byte") {
  std::mt19937_64 random(ooc::testing::random_seed("regions"));
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t sizes[] = {1, 7, 64, 512, 4096, 8000};
    const striping s{0, static_cast<std::uint32_t>(between(random, 1, 5)), sizes[between(random, 0, 5)]};
    request r;
    for (std::uint64_t e = between(random, 1, 3); e > 0; --e) {
      nested_request n;
      n.file_offset = between(random, 0, 20000);
      n.memory_offset = between(random, 0, 1000);
      n.run = between(random, 0, 60);
      n.depth = static_cast<std::uint32_t>(between(random, 0, 3));
      for (std::uint32_t l = 0; l < n.depth; ++l)
        n.levels[l] = {between(random, 0, 5), between(random, 0, 1) ? between(random, 0, 9000) : n.run,
                       between(random, 0, 1) ? between(random, 0, 200) : n.run};
      r.add(n);
    }
    CAPTURE(round, s.nn, s.sf);
    check_against_model(r, s);
  }
}

TEST_CASE("the cost of finding regions is that of the node's own stripes") {
  nested_request n;
  n.run = 8;
  n.depth = 1;
  n.levels[0] = {std::uint64_t{1} << 32, 4096, 8};
  request r;
  r.add(n);
  std::vector<region> found;
  CHECK(object_regions_within(r, {0, 1u << 20, 4096}, 12345, 3 * 4096, found));
  CHECK(found.size() == 4096);  // of 2^32 rows
  CHECK(regions_on(r, {0, 1u << 20, 4096}, 12345) == found);
  CHECK(object_regions_within(request::contiguous(0, std::uint64_t{1} << 50), {0, 1u << 30, 1u << 20}, 7, 3, found));
  CHECK(bytes(found) == std::uint64_t{1} << 20);
}

TEST_CASE("regions that overlap are found") {
  std::vector<region> p{{0, 0, 10}, {10, 20, 5}};
  CHECK_FALSE(ooc::storage::overlap(p));
  p.push_back({14, 30, 1});
  CHECK(ooc::storage::overlap(p));
}

TEST_CASE("a range of some regions, byte by byte") {
  const std::vector<region> all{{0, 70, 10}, {10, 0, 3}, {40, 5, 20}};
  // Node offset and memory offset of every byte.
  const auto bytes_of = [](const std::vector<region>& regions) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> bytes;
    for (const region& p : regions) {
      CHECK(p.length > 0);
      for (std::uint64_t i = 0; i < p.length; ++i) bytes.emplace_back(p.node_offset + i, p.memory_offset + i);
    }
    return bytes;
  };
  const auto every = bytes_of(all);
  for (std::uint64_t first = 0; first <= every.size() + 1; ++first)
    for (std::uint64_t count = 0; count <= every.size() + 1; ++count) {
      std::vector<region> some = all;
      cut(some, {first, count});
      const auto begin = std::min<std::size_t>(first, every.size());
      const auto end = count == 0 ? every.size() : std::min<std::size_t>(first + count, every.size());
      CHECK(bytes_of(some) == std::vector(every.begin() + static_cast<std::ptrdiff_t>(begin),
                                          every.begin() + static_cast<std::ptrdiff_t>(end)));
    }
  std::vector<region> none = all;
  cut(none, {~std::uint64_t{0}, ~std::uint64_t{0}});
  CHECK(none.empty());
}

TEST_CASE("even ranges are all of the regions, and cut no chunk") {
  std::mt19937_64 random(ooc::testing::random_seed("even ranges"));
  for (int round = 0; round < 500; ++round) {
    std::vector<region> regions;
    std::uint64_t node = between(random, 0, 9000), memory = 0, total = 0;
    for (std::uint64_t left = between(random, 1, 6); left > 0; --left) {
      regions.push_back({node, memory, between(random, 1, 40000)});
      total += regions.back().length;
      node = regions.back().node_end() + between(random, 0, 2) * between(random, 1, 9000);
      memory += regions.back().length + 1;
    }
    const std::size_t n = between(random, 1, 4);
    const std::uint64_t least = between(random, 1, 20000);
    CAPTURE(round, n, least, total);
    const auto ranges = even_ranges(regions, n, least);
    CHECK(ranges.size() <= std::max<std::uint64_t>(1, std::min<std::uint64_t>(n, total / least)));
    std::vector<region> together;
    std::uint64_t at = 0;
    for (const byte_range& r : ranges) {
      CHECK(r.first == at);
      std::vector<region> own = regions;
      cut(own, r);
      REQUIRE_FALSE(own.empty());
      for (const region& p : own) {
        at += p.length;
        if (!together.empty() && p.memory_offset == together.back().memory_offset + together.back().length) {
          CHECK(p.node_offset % chunk_size == 0);  // a region was cut here
          together.back().length += p.length;
        } else {
          together.push_back(p);
        }
      }
    }
    CHECK(together == regions);
  }
}

TEST_CASE("a walk ends after its steps, whether it finds regions, joins them or finds none") {
  constexpr std::uint64_t many = std::uint64_t{1} << 40;
  const auto walk = [](const nested_request& n, std::uint64_t steps) {
    request r;
    r.add(n);
    std::vector<region> out{{1, 2, 3}};
    const bool enough = ooc::storage::object_regions_within(r, {.sn = 0, .nn = 2, .sf = 8}, 0, steps, out);
    CHECK(out.empty() == !enough);
    return enough;
  };
  CHECK_FALSE(walk({.run = 1, .depth = 1, .levels = {{{many, 2, 1}}}}, 100000));
  CHECK_FALSE(walk({.run = 1, .depth = 1, .levels = {{{many, 0, 1}}}}, 100000));
  CHECK_FALSE(walk({.file_offset = 8, .run = 8, .depth = 1, .levels = {{{many, 16, 8}}}}, 100000));
  CHECK_FALSE(walk({.run = many}, 100000));
  CHECK(walk({.run = 1, .depth = 1, .levels = {{{4, 2, 1}}}}, 4));
  CHECK_FALSE(walk({.run = 1, .depth = 1, .levels = {{{4, 2, 1}}}}, 3));
}
