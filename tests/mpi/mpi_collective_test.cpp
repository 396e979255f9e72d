// read_all() and write_all() of arrays and files: what they move, what they refuse, and what the
// blocks in memory hold afterwards.
#include <catch2/catch.hpp>
#include <numeric>
#include <optional>

#include "mpi/ranks.hpp"
#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using Catch::Contains;
using testing::all_ranks;
using testing::common_store;
using testing::message_of;
using matrix = ooc_array<double, 2>;

namespace {

using group_ptr = std::shared_ptr<process_group>;

runtime_options small(unsigned blocks = 64) {
  runtime_options o;
  o.memory = common_store().core()->staging_bytes() + blocks * 4096;
  return o;
}

array_options<double> with(const group_ptr& g) { return {.block = 4096, .replace = true, .group = g}; }

/// The columns of this rank, cyclic: `width` of them, between those of the others.
box<2> columns_of(const group_ptr& g, const matrix& a, std::size_t width) {
  const std::size_t first = static_cast<std::size_t>(g->rank()) * width;
  return {{0, first}, {a.extent(0), first + width}};
}

std::vector<double> values(const box<2>& b, double salt) {
  std::vector<double> v;
  for (std::size_t i = b.lower[0]; i < b.upper[0]; ++i)
    for (std::size_t j = b.lower[1]; j < b.upper[1]; ++j) v.push_back(salt + static_cast<double>(i * 10000 + j));
  return v;
}

std::size_t differing(const matrix& a, double salt) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) n += a[i][j] != salt + static_cast<double>(i * 10000 + j);
  return n;
}

}  // namespace

TEST_CASE("columns that the ranks write together are seen by every element access") {
  const group_ptr g = all_ranks();
  const auto n = static_cast<std::size_t>(g->size());
  runtime rt(small());
  const store s = common_store();
  for (const std::size_t width : {1u, 3u, 64u, 512u}) {
    matrix a(rt, s, "columns/a", create, {50, width * n}, with(g));
    CHECK(std::as_const(a)[49][0] == 0);  // in memory on every rank
    const box<2> mine = columns_of(g, a, width);
    a.write_all(mine, values(mine, 5));
    CHECK(differing(a, 5) == 0);
    std::vector<double> back(mine.size());
    a.read_all(mine, back);
    CHECK(back == values(mine, 5));
  }
}

TEST_CASE("read_all sees what every rank has written and not written back") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  matrix a(rt, s, "dirty/a", create, {64, 96}, with(g));
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < 96; ++j) a[i][j] = 7 + static_cast<double>(i * 10000 + j);
  std::vector<double> all(a.size());
  a.read_all(a.whole(), all);  // overlapping boxes
  CHECK(all == values(a.whole(), 7));
  a.sync();
  CHECK(differing(a, 7) == 0);
}

TEST_CASE("write_all loses nothing that was modified beside its boxes") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  const auto n = static_cast<std::size_t>(g->size());
  matrix a(rt, s, "beside/a", create, {40, 8 * n}, with(g));
  // Each rank has two of its eight columns from memory, the others from write_all.
  const std::size_t first = static_cast<std::size_t>(g->rank()) * 8;
  for (std::size_t i = 0; i < 40; ++i)
    for (const std::size_t j : {first, first + 7}) a[i][j] = 3 + static_cast<double>(i * 10000 + j);
  const box<2> inner{{0, first + 1}, {40, first + 7}};
  a.write_all(inner, values(inner, 3));
  a.sync();
  CHECK(differing(a, 3) == 0);
}

TEST_CASE("what another rank writes by write_all into rows promised to be overwritten stays") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  array_options<double> o = with(g);
  o.owner_computes = true;
  matrix a(rt, s, "promised/a", create, {16 * static_cast<std::size_t>(g->size()), 256}, o);
  const auto [first, last] = a.local_rows();
  a.overwrite(a.local_box());
  box<2> given = a.part((g->rank() + 1) % g->size());
  given.upper[1] = 100;
  a.write_all(given, values(given, 11));
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 100; j < 256; ++j) a[i][j] = 11 + static_cast<double>(i * 10000 + j);
  a.sync();
  CHECK(differing(a, 11) == 0);
}

TEST_CASE("what another rank reads by read_all of rows promised to be overwritten stays") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  array_options<double> o = with(g);
  o.owner_computes = true;
  matrix a(rt, s, "promised/b", create, {16 * static_cast<std::size_t>(g->size()), 256}, o);
  a.write_all(a.local_box(), values(a.local_box(), 2));
  const auto [first, last] = a.local_rows();
  a.overwrite(a.local_box());
  std::vector<double> all(a.size());
  a.read_all(a.whole(), all);
  CHECK(all == values(a.whole(), 2));
  for (std::size_t i = first; i < last; ++i) a[i][7] = 2 + static_cast<double>(i * 10000 + 7);
  a.sync();
  CHECK(differing(a, 2) == 0);
}

TEST_CASE("blocks that no box touches stay in memory") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  const auto n = static_cast<std::size_t>(g->size());
  matrix a(rt, s, "stay/a", create, {32, 512}, with(g));  // a row is a block
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::as_const(a)[i][0] == 0);
  const std::size_t width = 512 / n;
  const std::size_t first = static_cast<std::size_t>(g->rank()) * width;
  const box<2> mine{{8, first}, {16, first + width}};
  const std::uint64_t before = rt.stats().blocks_invalidated;
  a.write_all(mine, values(mine, 1));
  CHECK(rt.stats().blocks_invalidated - before == 8);
}

TEST_CASE("a rank with nothing takes part") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  matrix a(rt, s, "nothing/a", create, {30, 30}, with(g));
  const bool has = g->rank() == g->size() - 1;
  const box<2> mine = has ? box<2>{{0, 3}, {30, 17}} : box<2>{{4, 4}, {4, 4}};
  a.write_all(mine, values(mine, 2));
  std::vector<double> back(has ? mine.size() : 0);
  a.read_all(mine, back);
  CHECK(back == (has ? values(mine, 2) : std::vector<double>{}));
  a.write_all({}, {});  // nobody
  CHECK(std::as_const(a)[29][16] == 2 + 290016);
}

TEST_CASE("boxes that overlap are refused on all ranks, with ranks and box, and nothing is written") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store s = common_store();
  matrix a(rt, s, "overlap/a", create, {20, 8 * static_cast<std::size_t>(g->size()) + 1}, with(g));
  box<2> mine = columns_of(g, a, 8);
  if (g->rank() == 0) mine.upper[1] += 1;
  const std::string text = message_of<usage_error>([&] { a.write_all(mine, values(mine, 1)); });
  CHECK_THAT(text, Contains("'overlap/a'") && Contains("ranks 0 and 1") && Contains("from {0, 8} to {20, 9}"));
  std::vector<double> all(a.size());
  a.read_all(a.whole(), all);
  CHECK(std::accumulate(all.begin(), all.end(), 0.0) == 0);
}

TEST_CASE("what one rank may not do is refused on all ranks, and they go on") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  const bool odd = g->rank() == g->size() - 1;
  matrix a(rt, s, "refused/a", create, {20, 20 * static_cast<std::size_t>(g->size())}, with(g));
  const box<2> mine = columns_of(g, a, 20);
  std::vector<double> memory(mine.size());
  CHECK_THAT(message_of<usage_error>([&] { a.read_all(mine, std::span(memory).first(odd ? 399 : 400)); }),
             Contains("399") && Contains("400"));
  CHECK_THAT(message_of<usage_error>([&] {
               a.read_all(odd ? box<2>{{0, 0}, {21, 20}} : mine, memory);
             }),
             Contains("does not lie within the extents"));
  {
    std::optional<pin_guard<const double>> pin;
    if (odd) pin.emplace(std::as_const(a).pin({{0, 0}, {1, 1}}));
    CHECK_THAT(message_of<usage_error>([&] { a.write_all(mine, memory); }), Contains("pinned"));
  }
  if (g->size() > 1)
    CHECK_THAT(message_of<usage_error>([&] {
                 if (odd)
                   a.sync();
                 else
                   a.read_all(mine, memory);
               }),
               Contains("read_all of 'refused/a'") && Contains("sync of 'refused/a'"));
  a.write_all(mine, values(mine, 4));
  CHECK(differing(a, 4) == 0);
  a.close();

  const matrix readable(rt, s, "refused/a", open_read_only, {.group = g});
  readable.read_all(mine, memory);
  CHECK(memory == values(mine, 4));
  matrix unwritable(rt, s, "refused/b", create, {2, 2}, with(g));
  unwritable.close();
  matrix b(rt, s, "refused/b", open_read_only, {.group = g});
  CHECK_THAT(message_of<usage_error>([&] { b.write_all({}, {}); }), Contains("reading only"));
}

TEST_CASE("a rank that throws before a collective read is named to those that wait") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store s = common_store();
  matrix a(rt, s, "leaves/a", create, {40, 40}, with(g));
  a.close();
  // A group of its own: it is of no use afterwards.
  const auto leaving = [&] {
    const group_ptr own = all_ranks();
    const matrix b(rt, s, "leaves/a", open_read_only, {.group = own});
    if (own->rank() == 1) throw std::runtime_error("enough");
    std::vector<double> memory(40);
    const auto column = static_cast<std::size_t>(own->rank());
    b.read_all({{0, column}, {40, column + 1}}, memory);
  };
  if (g->rank() == 1)
    CHECK_THROWS_AS(leaving(), std::runtime_error);
  else
    CHECK_THAT(message_of<io_error>(leaving), Contains("rank 1"));
  g->barrier("all have left");
}

TEST_CASE("an array without a group reads and writes boxes alone") {
  const group_ptr g = all_ranks();
  if (g->rank() == 0) {
    runtime rt(small());
    matrix a(rt, common_store(), "alone/a", create, {30, 40}, {.block = 4096, .replace = true});
    a[3][5] = 1;
    const box<2> b{{2, 4}, {10, 20}};
    std::vector<double> back(b.size());
    a.read_all(b, back);
    CHECK(back[16 + 1] == 1);
    a.write_all(b, values(b, 6));
    CHECK(a[9][19] == 6 + 90019);
    CHECK(a[3][5] == 6 + 30005);
  }
  g->barrier("alone");
}

TEST_CASE("the partitioned view, read and written by all ranks together") {
  const group_ptr g = all_ranks();
  const auto n = static_cast<std::uint64_t>(g->size());
  const auto me = static_cast<std::uint64_t>(g->rank());
  const store s = common_store();
  for (const std::uint64_t gsize : {1u, 100u, 4096u, 70000u}) {
    const std::string path = "view-" + std::to_string(gsize);
    const std::uint64_t groups = gsize < 4096 ? 300 : 5;
    const std::uint64_t mine = groups * gsize + gsize / 2;  // ends within a group
    if (g->rank() == 0) file::create(s, path, {.striping = {.sf = 8192}});
    g->barrier("made");
    file f = file::open(s, path, file_access::read_write);
    f.set_view({.offset = 10 + me * gsize, .gsize = gsize, .stride = n * gsize});
    const auto byte_at = [&](std::uint64_t i, std::uint64_t rank) {
      return static_cast<std::byte>(i * 7 + rank * 31 + 1);
    };
    std::vector<std::byte> part(mine);
    for (std::uint64_t i = 0; i < mine; ++i) part[i] = byte_at(i, me);
    f.write_all(*g, std::span(part).first(mine / 3));
    f.write_all(*g, std::span(part).subspan(mine / 3));
    CHECK(f.tell() == mine);

    f.seek(0);
    std::vector<std::byte> back(mine);
    CHECK(f.read_all(*g, back) == mine);
    CHECK(back == part);
    // The last group of the last rank is cut off there: nobody reads on.
    if (g->rank() == g->size() - 1)
      CHECK(f.read_all(*g, back) == 0);
    else
      f.read_all(*g, {});
    // The neighbours' bytes lie where they should.
    std::size_t wrong = 0;
    for (std::uint64_t r = 0; r < n; ++r) {
      f.set_view({.offset = 10 + r * gsize, .gsize = gsize, .stride = n * gsize});
      f.read(back);
      for (std::uint64_t i = 0; i < mine; ++i) wrong += back[i] != byte_at(i, r);
    }
    CHECK(wrong == 0);
    g->barrier("read");
    if (g->rank() == 0) s.core()->remove(path);
    g->barrier("removed");
  }
}

TEST_CASE("regions of a file that two ranks write are refused with ranks and bytes") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  if (g->rank() == 0) file::create(s, "regions", {.size = 100000});
  g->barrier("made");
  file f = file::open(s, "regions", file_access::read_write);
  const auto me = static_cast<std::uint64_t>(g->rank());
  const std::vector<std::byte> bytes(4000, std::byte{9});
  request r;
  for (std::uint64_t i = 0; i < 10; ++i) r.add(i * 1000 + me * 100, i * 100, 100);
  if (me == 1) r.add(3 * 1000, 1000, 10);              // of rank 0
  if (g->size() == 1) r.add(5 * 1000 + 50, 1000, 10);  // of its own
  CHECK_THAT(message_of<usage_error>([&] { f.write_all(*g, r, bytes); }),
             g->size() == 1 ? Contains("rank 0 writes the same 10 bytes at byte 5050 twice")
                            : Contains("ranks 0 and 1 write the same 10 bytes at byte 3000"));
  std::vector<std::byte> all(100000);
  f.read_at(0, all);
  CHECK(std::count(all.begin(), all.end(), std::byte{}) == 100000);
  CHECK_THAT(message_of<usage_error>([&] {
               std::vector<std::byte> out(20);
               f.read_all(*g, request::contiguous(me == 0 ? 99990 : 0, 20), out);
             }),
             Contains("byte 100010"));
  g->barrier("read");
  if (g->rank() == 0) s.core()->remove("regions");
}
