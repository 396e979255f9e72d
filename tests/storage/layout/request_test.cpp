#include "oocarray/request.hpp"

#include <catch2/catch.hpp>
#include <tuple>
#include <vector>

#include "oocarray/error.hpp"

using ooc::access_kind;
using ooc::nested_request;
using ooc::request;
using ooc::strided_request;

namespace {

// File offset of every byte, in the order of memory; memory offsets must be 0, 1, 2, ...
std::vector<std::uint64_t> bytes_of(const request& r) {
  std::vector<std::uint64_t> out;
  r.for_each_run([&](std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
    REQUIRE(memory == out.size());
    for (std::uint64_t i = 0; i < length; ++i) out.push_back(file + i);
  });
  return out;
}

// The definition, literally.
std::vector<std::uint64_t> model(const strided_request& s) {
  std::vector<std::uint64_t> out;
  const auto group = [&](std::uint64_t o, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) out.push_back(o + i);
  };
  std::uint64_t o = s.rl;
  if (s.fs != 0) {
    group(o, s.fs);
    o += s.fs + (s.sd - s.gs);
  }
  for (std::uint64_t i = 0; i < s.gc; ++i) {
    group(o, s.gs);
    o += s.sd;
  }
  if (s.ls != 0) group(o, s.ls);
  return out;
}

using runs = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

runs runs_of(const request& r) {
  runs out;
  r.for_each_run([&](std::uint64_t f, std::uint64_t m, std::uint64_t n) { out.emplace_back(f, m, n); });
  return out;
}

constexpr std::uint64_t top = (std::uint64_t{1} << 63) - 1;

}  // namespace

TEST_CASE("the papers' request with partial first and last groups") {
  const request r = request::strided({400, 300, 500, 2, 800, 400});
  CHECK(runs_of(r) == runs{{400, 0, 300}, {1000, 300, 500}, {1800, 800, 500}, {2600, 1300, 400}});
  CHECK(r.bytes() == 1700);
  CHECK(r.file_end() == 3000);
  CHECK(r.memory_end() == 1700);
}

TEST_CASE("the papers' request equals the partitioned view (200, 500, 800) from 200") {
  const std::vector<std::uint64_t> bytes = bytes_of(request::strided({400, 300, 500, 2, 800, 400}));
  REQUIRE(bytes.size() == 1700);
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t p = 200 + i;
    REQUIRE(bytes[i] == 200 + p / 500 * 800 + p % 500);
  }
}

TEST_CASE("blocks of the papers' matrix") {
  CHECK(runs_of(request::strided({2000, 0, 1000, 3, 6000, 0})) ==
        runs{{2000, 0, 1000}, {8000, 1000, 1000}, {14000, 2000, 1000}});
  CHECK(runs_of(request::strided({20000, 0, 1000, 3, 6000, 0})) ==
        runs{{20000, 0, 1000}, {26000, 1000, 1000}, {32000, 2000, 1000}});
}

TEST_CASE("one superblock, three ways to say it") {
  const auto bytes = bytes_of(request::strided({2000, 0, 2000, 3, 6000, 0}));
  CHECK(bytes.size() == 6000);
  CHECK(bytes == bytes_of(request::strided({2000, 2000, 2000, 2, 6000, 0})));
  CHECK(bytes == bytes_of(request::strided({2000, 2000, 2000, 1, 6000, 2000})));
}

TEST_CASE("every small strided request equals its definition byte by byte") {
  for (std::uint64_t rl : {0, 3})
    for (std::uint64_t gs = 0; gs <= 4; ++gs)
      for (std::uint64_t gc = 0; gc <= 3; ++gc)
        for (std::uint64_t sd = gs; sd <= 6; ++sd)
          for (std::uint64_t fs = 0; fs <= 5; ++fs)
            for (std::uint64_t ls = 0; ls <= 5; ++ls) {
              const strided_request s{rl, fs, gs, gc, sd, ls};
              const bool contiguous = gs == 0 && gc == 0 && ls == 0;
              if (!contiguous && (fs > gs || ls > gs || (gs == 0 && gc > 0))) {
                CHECK_THROWS_AS(request::strided(s), ooc::usage_error);
              } else {
                CAPTURE(rl, fs, gs, gc, sd, ls);
                const request r = request::strided(s, access_kind::write);
                REQUIRE(bytes_of(r) == model(s));
                REQUIRE(r.bytes() == model(s).size());
              }
            }
}

TEST_CASE("a request without bytes is empty") {
  CHECK(request::strided({}).empty());
  CHECK(request::strided({17, 0, 5, 0, 9, 0}).empty());
  CHECK(request::contiguous(4, 0).empty());
  CHECK(request::contiguous(4, 0).file_end() == 0);
}

TEST_CASE("overlapping groups can be read but not written") {
  const strided_request s{0, 0, 8, 3, 4, 0};
  CHECK_THROWS_AS(request::strided(s, access_kind::write), ooc::usage_error);
  CHECK(bytes_of(request::strided(s)) == model(s));
}

TEST_CASE("an offset past 2^63 - 1 is refused and the largest is not") {
  CHECK_NOTHROW(request::contiguous(top - 10, 10));
  CHECK_THROWS_AS(request::contiguous(top - 10, 11), ooc::usage_error);
  CHECK_THROWS_AS(request::contiguous(~std::uint64_t{0}, 2), ooc::usage_error);
  CHECK_NOTHROW(request::strided({0, 0, 1, 2, top - 1, 0}));
  CHECK_THROWS_AS(request::strided({0, 0, 1, 2, top, 0}), ooc::usage_error);
  CHECK_THROWS_AS(request::strided({0, 0, 2, std::uint64_t{1} << 62, 2, 0}), ooc::usage_error);
  CHECK_THROWS_AS(request::strided({0, 0, 1, 3, std::uint64_t{1} << 62, 1}), ooc::usage_error);
  CHECK_THROWS_AS(request::strided({1, 1, 1, 0, top, 1}), ooc::usage_error);
  CHECK_THROWS_AS(request::strided({~std::uint64_t{0}, 1, 0, 0, 0, 0}), ooc::usage_error);
  // Groups before the start of the file.
  CHECK_THROWS_AS(request::strided({0, 1, 9, 1, 2, 0}), ooc::usage_error);
}

TEST_CASE("a nested request that overflows in memory or in its count is refused") {
  nested_request n;
  n.run = 8;
  n.depth = 2;
  n.levels[0] = {std::uint64_t{1} << 32, 0, 0};
  n.levels[1] = {std::uint64_t{1} << 32, 0, 0};
  request r;
  CHECK_THROWS_AS(r.add(n), ooc::usage_error);
  n.levels[0] = {3, 100, std::uint64_t{1} << 62};
  n.levels[1] = {1, 0, 0};
  CHECK_THROWS_AS(r.add(n), ooc::usage_error);
  n.levels[0] = {~std::uint64_t{0}, ~std::uint64_t{0}, 0};
  CHECK_THROWS_AS(r.add(n), ooc::usage_error);
  n.depth = 9;
  CHECK_THROWS_AS(r.add(n), ooc::usage_error);
  CHECK(r.empty());
  CHECK(r.bytes() == 0);
}

TEST_CASE("neighbours are joined") {
  request r;
  r.add(100, 0, 10);
  r.add(110, 10, 5);
  CHECK(r.entries().size() == 1);
  r.add(115, 20, 5);  // a gap in memory
  r.add(120, 25, 0);  // nothing
  CHECK(r.entries().size() == 2);
  CHECK(r.bytes() == 20);
  CHECK(r.memory_end() == 25);
}

TEST_CASE("whole rows are one run") {
  nested_request n;
  n.run = 100;
  n.depth = 3;
  n.levels[0] = {4, 1000, 1000};
  n.levels[1] = {10, 100, 100};
  n.levels[2] = {1, 7, 9};
  request r;
  r.add(n);
  CHECK(runs_of(r) == runs{{0, 0, 4000}});
}
