#include "oocarray/blocking.hpp"

#include <catch2/catch.hpp>
#include <tuple>

#include "oocarray/error.hpp"
#include "oocarray/striping.hpp"

namespace {

using run = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // file, memory, length

std::vector<run> runs_of(const ooc::request& r) {
  std::vector<run> out;
  r.for_each_run([&](std::uint64_t f, std::uint64_t m, std::uint64_t n) {
    if (!out.empty() && std::get<0>(out.back()) + std::get<2>(out.back()) == f &&
        std::get<1>(out.back()) + std::get<2>(out.back()) == m)
      std::get<2>(out.back()) += n;
    else
      out.emplace_back(f, m, n);
  });
  return out;
}

std::vector<run> runs_of(const ooc::nested_request& n) {
  ooc::request r;
  r.add(n);
  return runs_of(r);
}

/// (node, offset on the node, length) of every piece, adjacent ones joined.
std::vector<run> regions_of(const ooc::nested_request& n, const ooc::striping& s) {
  std::vector<run> out;
  for (auto [file, memory, length] : runs_of(n))
    while (length > 0) {
      const std::uint64_t take = std::min(length, s.sf - file % s.sf);
      const run piece{s.node_of(file, 4), s.node_offset(file), take};
      bool joined = false;
      for (run& o : out)
        if (std::get<0>(o) == std::get<0>(piece) && std::get<1>(o) + std::get<2>(o) == std::get<1>(piece)) {
          std::get<2>(o) += take;
          joined = true;
        }
      if (!joined) out.push_back(piece);
      file += take;
      length -= take;
    }
  std::sort(out.begin(), out.end());
  return out;
}

// The paper's matrix: 9 rows of 12 records of 500 bytes.
const ooc::blocking paper{.rs = 500, .ne = {2, 3}, .nb = {6, 3}, .bf = {2, 1}};

ooc::nested_request block(const ooc::blocking& b, const ooc::block_coordinates& at) {
  return b.request_of(b.block_box(at));
}

}  // namespace

TEST_CASE("a block of the paper's matrix is the paper's strided request") {
  paper.check();
  for (std::uint64_t by = 0; by < 3; ++by)
    for (std::uint64_t bx = 0; bx < 6; ++bx)
      CHECK(runs_of(block(paper, {bx, by})) ==
            runs_of(ooc::request::strided({18000 * by + 1000 * bx, 0, 1000, 3, 6000, 0})));
  CHECK(runs_of(block(paper, {2, 0})) == std::vector<run>{{2000, 0, 1000}, {8000, 1000, 1000}, {14000, 2000, 1000}});
  CHECK(runs_of(block(paper, {2, 1})) == std::vector<run>{{20000, 0, 1000}, {26000, 1000, 1000}, {32000, 2000, 1000}});
}

TEST_CASE("the paper's blocks fall on the nodes as in the vectors") {
  const ooc::striping all{0, 4, 4096}, two{1, 2, 8000};
  const auto bytes_on = [](const std::vector<run>& regions, std::uint64_t node) {
    std::uint64_t n = 0;
    for (const run& p : regions)
      if (std::get<0>(p) == node) n += std::get<2>(p);
    return n;
  };
  const auto first = regions_of(block(paper, {2, 0}), all);
  CHECK(bytes_on(first, 0) == 1000);
  CHECK(bytes_on(first, 1) == 192);
  CHECK(bytes_on(first, 2) == 808);
  CHECK(bytes_on(first, 3) == 1000);
  const auto first_two = regions_of(block(paper, {2, 0}), two);
  CHECK(bytes_on(first_two, 1) == 1000);
  CHECK(bytes_on(first_two, 2) == 2000);
  CHECK(regions_of(block(paper, {2, 1}), all) ==
        std::vector<run>{{0, 7712, 712}, {1, 4096, 520}, {2, 5520, 1000}, {3, 7424, 768}});
  CHECK(regions_of(block(paper, {2, 1}), two) ==
        std::vector<run>{{1, 12000, 1000}, {1, 16000, 1000}, {2, 10000, 1000}});
}

TEST_CASE("a superblock of the paper's matrix is one strided request") {
  CHECK(paper.superblock_of({2, 0}) == paper.superblock_of({3, 0}));
  CHECK(paper.superblock_of({2, 0}) != paper.superblock_of({4, 0}));
  const ooc::nested_request s = paper.request_of(paper.superblock_box(paper.superblock_of({2, 0})));
  CHECK(s.bytes() == 6000);
  for (const ooc::strided_request& same :
       {ooc::strided_request{2000, 0, 2000, 3, 6000, 0}, ooc::strided_request{2000, 2000, 2000, 2, 6000, 0},
        ooc::strided_request{2000, 2000, 2000, 1, 6000, 2000}})
    CHECK(runs_of(s) == runs_of(ooc::request::strided(same)));
}

TEST_CASE("the solver holds n * n * Esz * (bf_A + bf_inverses) bytes") {
  constexpr std::uint64_t Ki = 1024, Mi = Ki * Ki;
  const auto solver = [](std::uint64_t order) {
    const std::uint64_t n = order / 64;
    const ooc::blocking a{.rs = 16, .ne = {n, n}, .nb = {64, 64}, .bf = {64, 1}};
    const ooc::blocking inverses{.rs = 16, .ne = {n, n}, .nb = {64, 1}, .bf = {64, 1}};
    a.check();
    inverses.check();
    return a.superblock_bytes() + inverses.superblock_bytes();
  };
  CHECK(solver(6 * Ki) == 18 * Mi);
  CHECK(solver(10 * Ki) == 50 * Mi);
  // The whole matrix in the virtual memory of N nodes: M * M * Esz / N.
  const auto virtual_memory = [](std::uint64_t order, std::uint64_t nodes) {
    const ooc::blocking a{.rs = 16, .ne = {order / 64, order / 64}, .nb = {64, 64}, .bf = {}};
    return a.file_bytes() / nodes;
  };
  CHECK(virtual_memory(3 * Ki, 4) == 36 * Mi);
  CHECK(virtual_memory(4 * Ki, 4) == 64 * Mi);
  CHECK(virtual_memory(5 * Ki, 8) == 50 * Mi);
  CHECK(virtual_memory(6 * Ki, 8) == 72 * Mi);
}

TEST_CASE("a superblock that the factors do not divide is clipped at the edge") {
  const ooc::blocking b{.rs = 8, .ne = {2, 3, 1}, .nb = {5, 3, 2}, .bf = {2, 2, 4}};
  b.check();
  CHECK(b.superblocks(0) == 3);
  CHECK(b.superblocks(1) == 2);
  CHECK(b.superblocks(2) == 1);
  CHECK(b.superblocks() == 6);
  const ooc::record_box corner = b.superblock_box(b.superblock_of({4, 2, 1}));
  CHECK(corner.begin == ooc::block_coordinates{8, 6, 0});
  CHECK(corner.extent == ooc::block_coordinates{2, 3, 2});
  std::uint64_t bytes = 0;
  for (std::uint64_t s = 0; s < b.superblocks(); ++s) bytes += b.request_of(b.superblock_box(s)).bytes();
  CHECK(bytes == b.file_bytes());
}

TEST_CASE("dimensions that a box spans whole become one run") {
  const ooc::blocking b{.rs = 8, .ne = {4, 3, 2}, .nb = {1, 1, 5}, .bf = {}};
  CHECK(block(b, {0, 0, 3}).depth == 0);
  CHECK(block(b, {0, 0, 3}).run == 8 * 4 * 3 * 2);
  CHECK(block(b, {0, 0, 3}).file_offset == 8 * 4 * 3 * 2 * 3);
}

TEST_CASE("a blocking that cannot be is refused with the reason") {
  using ooc::blocking;
  const blocking wrong[] = {
      {.rs = 1, .ne = {}, .nb = {}, .bf = {}},
      {.rs = 1, .ne = {1, 2}, .nb = {3}, .bf = {}},
      {.rs = 1, .ne = {1}, .nb = {3}, .bf = {1, 1}},
      {.rs = 0, .ne = {1}, .nb = {3}, .bf = {}},
      {.rs = 1, .ne = {0}, .nb = {3}, .bf = {}},
      {.rs = 1, .ne = {1}, .nb = {3}, .bf = {0}},
      {.rs = 1, .ne = {1ull << 32}, .nb = {1ull << 31}, .bf = {}},
      {.rs = 1ull << 63, .ne = {1}, .nb = {2}, .bf = {}},
      {.rs = 1, .ne = std::vector<std::uint64_t>(9, 1), .nb = std::vector<std::uint64_t>(9, 1), .bf = {}}};
  for (const blocking& b : wrong) {
    try {
      b.check();
      FAIL("not refused");
    } catch (const ooc::usage_error& e) {
      CHECK(e.code() == ooc::errc::invalid_request);
    }
  }
  CHECK_FALSE(paper.contains({6, 0}));
  CHECK_FALSE(paper.contains({0, 0, 0}));
  CHECK(paper.contains({5, 2}));
}
