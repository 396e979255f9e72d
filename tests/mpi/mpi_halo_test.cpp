// sync_halo(): what it makes visible, what stays in memory, and what the checking mode says of it.
#include <catch2/catch.hpp>

#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/ooc_array.hpp"

using namespace ooc;
using testing::all_ranks;
using testing::common_store;
using testing::conflict_of;
using testing::message_of;
using testing::page;
using testing::small;
using testing::soon;
using group_ptr = std::shared_ptr<process_group>;
using matrix = ooc_array<double, 2>;

namespace {

array_options<double> with(const group_ptr& g, bool owner_computes = true) {
  return {.block = 4096, .replace = true, .group = g, .owner_computes = owner_computes};
}

/// Every row of this rank's part becomes `value` + its index.
void write_part(matrix& a, double value) {
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) a[i][j] = value + static_cast<double>(i);
}

std::size_t wrong_rows(const matrix& a, std::size_t first, std::size_t last, double value) {
  std::size_t wrong = 0;
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j)
      if (a[i][j] != value + static_cast<double>(i)) {
        ++wrong;
        break;
      }
  return wrong;
}

}  // namespace

TEST_CASE("sync_halo shows the rows beside the borders, and the others stay modified in memory") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  for (const std::size_t width : {1u, 2u}) {
    runtime rt(small());
    const auto ranks = static_cast<std::size_t>(g->size());
    const std::size_t rows = 8 * ranks;
    matrix a(rt, s, "halo/a", create, {rows, page}, with(g));
    const auto [first, last] = a.local_rows();
    REQUIRE(last - first == 8);
    const std::size_t borders = (first > 0) + (last < rows);
    for (int round = 1; round <= 4; ++round) {
      const std::uint64_t before = rt.stats().bytes_written;
      write_part(a, round * 1000.0);
      MPI_Barrier(MPI_COMM_WORLD);  // nobody reads what others are about to write
      a.sync_halo(width);
      CHECK(rt.stats().bytes_written - before == borders * width * 4096);
      CHECK(a.dirty_blocks() == 8 - borders * width);
      const std::size_t from = first - std::min(first, width), to = std::min(last + width, rows);
      CHECK(wrong_rows(a, from, to, round * 1000.0) == 0);
    }
    a.sync();
    CHECK(a.dirty_blocks() == 0);
    CHECK(wrong_rows(a, 0, rows, 4000) == 0);
  }
}

TEST_CASE("sync_halo begins to load the rows with which the next sweep begins, as far as memory allows") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  matrix a(rt, s, "ahead/a", create, {8 * static_cast<std::size_t>(g->size()), page}, with(g));
  const auto [first, last] = a.local_rows();
  a.advise(access_pattern::random);
  write_part(a, 1000);
  a.sync();
  // Not where nothing is to be read ahead, and no more than may be: an eighth of 64 blocks, of which
  // one is there by then.
  for (const auto& [pattern, width, expected] : {std::tuple(access_pattern::random, std::size_t{1}, std::size_t{0}),
                                                 {access_pattern::automatic, 1, 1},
                                                 {access_pattern::automatic, 2, 2},
                                                 {access_pattern::automatic, 1000, 7}}) {
    a.advise(pattern);
    a[last - 1][0] = 2000.0 + static_cast<double>(width);
    const std::uint64_t before = rt.stats().bytes_read;
    a.sync_halo(width);
    const std::uint64_t blocks = std::min<std::uint64_t>(expected, first);
    CHECK(soon([&] { return rt.stats().bytes_read - before >= blocks * 4096; }));
    if (first > 0) CHECK(std::as_const(a)[first - 1][0] == 2000.0 + static_cast<double>(width));
    CHECK(rt.stats().bytes_read - before == std::max<std::uint64_t>(blocks, first > 0) * 4096);
    MPI_Barrier(MPI_COMM_WORLD);  // nobody writes what others are about to read
  }
}

TEST_CASE("what sync_halo left out is told by the next sync, also where it has left memory") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  const bool reads = g->rank() == g->size() - 1 && g->size() > 1;
  const std::size_t part = GENERATE(20, 150);  // of 64 rows in memory
  const std::size_t rows = part * static_cast<std::size_t>(g->size());
  matrix a(rt, s, "halo/b", create, {rows, page}, with(g));
  if (reads) CHECK(wrong_rows(a, 5, 15, 1000) == 10);  // rank 0's, which stay in this rank's memory
  a.sync();
  if (!reads) write_part(a, 1000);
  a.sync_halo();
  a.sync_halo();
  a.sync();
  if (reads) CHECK(wrong_rows(a, 5, 15, 1000) == 0);
}

TEST_CASE("borders within blocks lose nothing of what either side wrote") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  const bool owner_computes = GENERATE(false, true);
  runtime rt(small());
  const std::size_t columns = 40;  // a block holds 12.8 rows, parts have 5
  const std::size_t rows = 5 * static_cast<std::size_t>(g->size());
  matrix a(rt, s, "halo/c", create, {rows, columns}, with(g, owner_computes));
  const auto [first, last] = a.local_rows();
  for (int round = 1; round <= 5; ++round) {
    write_part(a, round * 1000.0);
    a.sync_halo();
    CHECK(wrong_rows(a, first - (first > 0), last + (last < rows), round * 1000.0) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  a.sync();
  CHECK(wrong_rows(a, 0, rows, 5000) == 0);
}

TEST_CASE("a halo as wide as the array is a sync, and more ranks than rows take part") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  for (const std::size_t rows : {std::size_t{2}, std::size_t{30}}) {
    matrix a(rt, s, "halo/d", create, {rows, page}, with(g));
    write_part(a, 7);
    a.sync_halo(std::numeric_limits<std::size_t>::max());
    if (g->size() > 1) CHECK(a.dirty_blocks() == 0);
    CHECK(wrong_rows(a, 0, rows, 7) == 0);
    a.close();
  }
}

TEST_CASE("ranks that want halos of different widths are told, and may go on") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  const store s = common_store();
  runtime rt(small());
  matrix a(rt, s, "halo/e", create, {16, page}, with(g));
  CHECK_THAT(message_of<usage_error>([&] { a.sync_halo(g->rank() == 1 ? 2 : 1); }),
             Catch::Contains("rank 1: sync_halo(2) of 'halo/e'") && Catch::Contains("sync_halo(1) of 'halo/e'"));
  CHECK_NOTHROW(a.sync_halo());
}

TEST_CASE("a pinned region makes sync_halo an error on all ranks") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  matrix a(rt, s, "halo/f", create, {16, page}, with(g));
  write_part(a, 1);
  {
    std::optional<pin_guard<const double>> pin;
    if (g->rank() == g->size() - 1) pin.emplace(std::as_const(a).pin({{3, 0}, {4, page}}));
    CHECK_THAT(message_of<usage_error>([&] { a.sync_halo(); }),
               Catch::Contains("pinned") && Catch::Contains("sync_halo(1)"));
  }
  a.sync_halo();
  a.sync();
  CHECK(wrong_rows(a, 0, 16, 1) == 0);
}

TEST_CASE("an array without a group has no borders") {
  if (all_ranks()->rank() != 0) return;
  runtime rt(small());
  matrix a(rt, common_store(), "halo/alone", create, {4, page}, {.block = 4096, .replace = true});
  write_part(a, 1);
  a.sync_halo();
  CHECK(a.dirty_blocks() == 4);
}

TEST_CASE("checking: a row that was written, never shown, and read is a conflict") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  const store s = common_store();
  runtime rt(small());
  array_options<double> o = with(g);
  o.checking = check_conflicts;
  const std::size_t rows = 8 * static_cast<std::size_t>(g->size());
  const bool last = g->rank() == g->size() - 1;
  for (const bool whole : {false, true}) {
    matrix a(rt, s, "halo/checked", create, {rows, page}, o);
    const auto halo = [&] { a.sync_halo(); };
    write_part(a, 1000);
    CHECK(conflict_of(halo).empty());
    CHECK(conflict_of(halo).empty());
    // Row 3 of rank 0's part has not been shown: what the last rank reads there depends on luck.
    if (last) CHECK(std::as_const(a)[3][0] != -1);
    {  // a sync that fails takes nothing off the record
      std::optional<pin_guard<const double>> pin;
      if (last) pin.emplace(std::as_const(a).pin({{3, 0}, {4, page}}));
      CHECK_THROWS_AS(a.sync_halo(), usage_error);
    }
    const std::string found = conflict_of([&] { whole ? a.sync() : a.sync_halo(); });
    CHECK_THAT(found, Catch::Contains("rank " + std::to_string(g->size() - 1) + " read blocks in which rank 0 wrote") &&
                          Catch::Contains("{3, 0} to {4, " + std::to_string(page) + "}"));
    CHECK(conflict_of(halo).empty());  // it is told once
    CHECK(conflict_of([&] { a.sync(); }).empty());
    if (last) CHECK(std::as_const(a)[3][0] == 1003);
    CHECK(conflict_of(halo).empty());  // shown by sync()
    a.close();
  }
}

TEST_CASE("checking: what is written after a sync_halo does not disturb who read before it") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  array_options<double> o = with(g);
  o.checking = check_conflicts;
  matrix a(rt, s, "halo/ordered", create, {8 * static_cast<std::size_t>(g->size()), page}, o);
  for (int round = 1; round <= 3; ++round) {
    if (g->rank() == g->size() - 1) CHECK(std::as_const(a)[3][0] == (round == 1 ? 0 : round + 2));
    CHECK(conflict_of([&] { a.sync_halo(); }).empty());
    if (g->rank() == 0) a[3][0] = round + 3;
    CHECK(conflict_of([&] { a.sync(); }).empty());
  }
}

TEST_CASE("checking: a stencil that shows its borders has no conflicts") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small());
  array_options<double> o = with(g);
  o.checking = check_conflicts;
  const std::size_t rows = 8 * static_cast<std::size_t>(g->size());
  matrix a(rt, s, "halo/from", create, {rows, page}, o), b(rt, s, "halo/to", create, {rows, page}, o);
  matrix *from = &a, *to = &b;
  write_part(a, 0);
  a.sync();
  const auto [first, last] = a.local_rows();
  for (int k = 0; k < 4; ++k) {
    for (std::size_t i = std::max<std::size_t>(first, 1); i < std::min(last, rows - 1); ++i)
      for (std::size_t j = 0; j < page; ++j)
        (*to)[i][j] = 1 + (std::as_const(*from)[i - 1][j] + std::as_const(*from)[i + 1][j]) / 2;
    CHECK(conflict_of([&] { to->sync_halo(); }).empty());
    CHECK(conflict_of([&] { from->sync_halo(); }).empty());
    std::swap(from, to);
  }
  std::size_t wrong = 0;
  for (std::size_t i = std::max<std::size_t>(first, 5); i < std::min(last, rows - 5); ++i)
    wrong += std::as_const(*from)[i][3] != static_cast<double>(i) + 4;
  CHECK(wrong == 0);
}
