// resize() of arrays that several ranks use together.
#include <catch2/catch.hpp>

#include "mpi/pinning_group.hpp"
#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using Catch::Contains;
using testing::all_ranks;
using testing::common_store;
using testing::message_of;
using testing::small;

namespace {

using group_ptr = std::shared_ptr<process_group>;
using matrix = ooc_array<int, 2>;

constexpr std::size_t columns = 70;

array_options<int> with(const group_ptr& g) {
  return {.block = 4096,
          .stripes = {.sf = 4096},  // small arrays, and parts of them, on all nodes
          .fill = -7,
          .max_extents = {300},
          .replace = true,
          .group = g};
}

int number(std::size_t i, std::size_t j, int salt) { return static_cast<int>(i * columns + j) * 8 + salt; }

template <class Array>
void write_part(Array& a, int salt) {
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < columns; ++j) a(i, j) = number(i, j, salt);
}

/// Elements that are not as write_part() left them in `rows` rows, or not fill in those after.
template <class Array>
std::size_t wrong(const Array& a, std::size_t rows, int salt) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < columns; ++j) n += a(i, j) != (i < rows ? number(i, j, salt) : -7);
  return n;
}

template <class Layout>
void shrink_and_grow(file_order order, bool owner_computes) {
  const group_ptr g = all_ranks();
  runtime rt(small());
  auto o = with(g);
  o.order = order;
  o.tile = {16, 32};
  o.owner_computes = owner_computes;
  ooc_array<int, 2, Layout> a(rt, common_store(), "resize/a", create, {100, columns},
                              ooc::testing::tile_if_used<Layout>(o));
  write_part(a, 1);
  a.resize(40);  // what no sync() has told yet
  CHECK(a.extent(0) == 40);
  CHECK(a.part(g->size() - 1).upper[0] == 40);
  CHECK(wrong(std::as_const(a), 40, 1) == 0);
  a.resize(300);
  CHECK(a.part(g->size() - 1).upper[0] == 300);
  CHECK(wrong(std::as_const(a), 40, 1) == 0);
  g->barrier("all have looked");
  write_part(a, 2);
  a.sync();
  CHECK(wrong(std::as_const(a), 300, 2) == 0);
  a.close();
  const ooc_array<int, 2, Layout> again(rt, common_store(), "resize/a", open_read_only, {.group = g});
  CHECK(again.extent(0) == 300);
  CHECK(wrong(again, 300, 2) == 0);
}

}  // namespace

TEST_CASE("all ranks see the new shape, the rows that stay, and fill in the new ones") {
  for (const file_order order : {file_order::row_major, file_order::tiled})
    for (const bool owner_computes : {false, true}) {
      shrink_and_grow<layout_right>(order, owner_computes);
      shrink_and_grow<layout_tiled>(order, owner_computes);
    }
}

TEST_CASE("all ranks see both extents change, keep their references, and find fill in what is new") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  for (const bool owner_computes : {false, true}) {
    auto o = with(g);
    o.order = file_order::tiled;
    o.tile = {16, 16};
    o.max_extents = {300, 200};
    o.owner_computes = owner_computes;
    ooc_array<int, 2, layout_tiled> a(rt, common_store(), "both/a", create, {100, columns}, o);
    const int* const stays = &std::as_const(a)(5, 17);
    write_part(a, 1);
    const auto right = [&](std::size_t rows, std::size_t known) {
      std::size_t n = 0;
      for (std::size_t i = 0; i < a.extent(0); ++i)
        for (std::size_t j = 0; j < a.extent(1); ++j)
          n += std::as_const(a)(i, j) != (i < rows && j < known ? number(i, j, 1) : -7);
      g->barrier("all have looked");
      return n == 0 && stays == &std::as_const(a)(5, 17);
    };
    a.resize({100, 200});
    CHECK(right(100, columns));
    const auto [first, last] = a.local_rows();
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = columns; j < 200; ++j) a(i, j) = number(i, j, 1);
    a.resize({300, 150});
    CHECK(right(100, 150));
    a.resize({37, 33});
    a.resize({290, 190});
    CHECK(right(37, 33));
    a.close();
  }
}

TEST_CASE("what a rank had in memory past the new end is gone when the array grows again") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  matrix a(rt, common_store(), "past/a", create, {100, columns}, with(g));
  write_part(a, 3);
  a.sync();
  CHECK(wrong(std::as_const(a), 100, 3) == 0);  // every rank has blocks of all rows
  a.resize(10);
  a.resize(100);
  CHECK(wrong(std::as_const(a), 10, 3) == 0);
}

TEST_CASE("a block that comes to another rank's part loses nothing of what its owner wrote") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  auto o = with(g);
  o.owner_computes = true;
  constexpr std::size_t length = 8 * 4096 / sizeof(int);
  o.max_extents = {2 * length};
  ooc_array<int, 1> a(rt, common_store(), "moves/a", create, {length}, o);
  const std::size_t theirs = a.part(1).lower[0];
  CHECK(std::as_const(a)[theirs] == -7);  // every rank keeps an old copy
  g->barrier("all have a copy");
  if (g->rank() == 1) a[theirs] = 1;
  a.resize(2 * length);
  REQUIRE(a.part(0).upper[0] > theirs + 1);
  if (g->rank() == 0) a[theirs + 1] = 2;
  a.sync();
  CHECK(std::as_const(a)[theirs] == 1);
  CHECK(std::as_const(a)[theirs + 1] == 2);
}

TEST_CASE("ranks that resize to different extents are told who asked for what") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  matrix a(rt, common_store(), "differ/a", create, {20, columns}, with(g));
  CHECK_THAT(message_of<usage_error>([&] { a.resize(g->rank() == 1 ? 40 : 30); }),
             Contains("rank 1: resize of 'differ/a' to {40, 70}") && Contains("resize of 'differ/a' to {30, 70}"));
  CHECK(a.extent(0) == 20);
  a.resize(30);
  CHECK(a.extent(0) == 30);
}

TEST_CASE("what keeps one rank from resizing is the same error on all, and the array goes on") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const int last = g->size() - 1;
  const std::string who = g->size() == 1 ? "" : "rank " + std::to_string(last) + ": ";
  matrix a(rt, common_store(), "refused/a", create, {20, columns}, with(g));
  write_part(a, 4);
  {
    std::optional<pin_guard<const int>> pin;
    if (g->rank() == last) pin.emplace(std::as_const(a).pin({{0, 0}, {1, 1}}));
    CHECK_THAT(message_of<usage_error>([&] { a.resize(40); }), Contains(who) && Contains("pinned"));
  }
  CHECK_THAT(message_of<usage_error>([&] { a.resize(301); }), Contains("0 to 300, not 301"));
  CHECK(a.extent(0) == 20);
  a.resize(40);
  CHECK(wrong(std::as_const(a), 20, 4) == 0);
}

TEST_CASE("a node that cannot grow is the same error on all ranks, and nothing has changed") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const testing::faulty_store nodes;
  matrix a(rt, nodes.handle, "full/a", create, {20, columns}, with(g));
  write_part(a, 5);
  nodes.fail(
      {.call = storage::io_kind::resize, .times = 1, .error = std::make_error_code(std::errc::no_space_on_device)});
  const std::string text = message_of<io_error>([&] { a.resize(300); });
  CHECK_THAT(text, Contains("resizing failed") && Contains("No space left"));
  if (g->size() > 1) CHECK_THAT(text, Contains("rank 0: "));
  nodes.clear();
  CHECK(a.extent(0) == 20);
  CHECK(wrong(std::as_const(a), 20, 5) == 0);
  // Only one rank has spoken to the nodes.
  if (g->rank() != 0) CHECK(nodes.calls(storage::io_kind::resize) == 0);
  a.resize(300);
  CHECK(wrong(std::as_const(a), 20, 5) == 0);
}

TEST_CASE("ranks have no part of an array without rows, and share the rows that it gets") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  for (const bool owner_computes : {false, true}) {
    auto o = with(g);
    o.owner_computes = owner_computes;
    {
      matrix a(rt, common_store(), "empty/a", create, {0, columns}, o);
      CHECK(a.local_rows() == std::pair<std::size_t, std::size_t>{0, 0});
      a.sync();
      a.sync_halo(1);
      a.resize(200);
      write_part(a, 6);
      a.sync();
      CHECK(wrong(std::as_const(a), 200, 6) == 0);
      a.sync();  // before what was read goes
      a.resize(0);
      CHECK(a.local_rows() == std::pair<std::size_t, std::size_t>{0, 0});
    }
    matrix a(rt, common_store(), "empty/a", ooc::open, {.block = 4096, .group = g});
    CHECK(a.size() == 0);
    a.sync();
    a.resize(20);
    CHECK(wrong(std::as_const(a), 0, 6) == 0);
  }
  auto o = with(g);
  o.stripes = {};
  o.placement = placement::by_rank;
  CHECK_THAT(message_of<usage_error>([&] {
               matrix(rt, common_store(), "empty/b", create, {0, columns}, o);
             }),
             Contains("no rows yet"));
}

TEST_CASE("where the deadline of a resize passes, nobody writes to the array until it is opened again") {
  if (all_ranks()->size() == 1) return;
  testing::faulty_store s;
  {
    const group_ptr g = all_ranks(std::chrono::seconds(2));
    runtime rt(small());
    matrix a(rt, s.handle, "resize/a", create, {100, columns}, with(g));
    write_part(a, 1);
    a.sync();
    if (g->rank() == 0) s.fail({.call = storage::io_kind::resize, .delay = std::chrono::seconds(5)});
    CHECK_THROWS_AS(a.resize(40), io_error);
    s.clear();
    const std::string text = message_of<io_error>([&] {
      a.scatter(std::vector<matrix::index_type>{{a.local_rows().first, 0}}, std::vector<int>{7});
      a.writeback();
    });
    CHECK_THAT(text, Contains("the file of array 'resize/a' was changed: close the array and open it again"));
    a.invalidate(discard);
  }
  const group_ptr g = all_ranks();
  runtime rt(small());
  const matrix a(rt, common_store(), "resize/a", open_read_only, {.group = g});
  CHECK(a.extent(0) == 40);
  CHECK(wrong(a, 40, 1) == 0);
  g->barrier("all have looked");
}

TEST_CASE("what one rank cannot forget in a resize is an error of all, and nothing is resized") {
  const group_ptr g = all_ranks(std::chrono::seconds(10));
  if (g->size() == 1) return;
  runtime rt(small());
  testing::pinning_group<matrix> pinning(g, {{0, 0}, {1, columns}});
  matrix a(rt, common_store(), "resize/a", create, {100, columns}, with(pinning.group));
  CHECK(std::as_const(a)(0, 0) == -7);
  a.sync();
  write_part(a, 1);
  if (g->rank() == g->size() - 1) {
    pinning.calls_before = 1;  // it tells that it has come
    pinning.array = &a;
  }
  CHECK_THAT(message_of<usage_error>([&] { a.resize(40); }),
             Contains("rank " + std::to_string(g->size() - 1)) && Contains("pinned it during sync"));
  pinning.pinned.reset();
  CHECK(a.extent(0) == 100);
  a.resize(40);
  CHECK(wrong(std::as_const(a), 40, 1) == 0);
  g->barrier("all have looked");
}
