// Commits of arrays that several ranks use together.
#include <algorithm>
#include <catch2/catch.hpp>

#include "mpi/pinning_group.hpp"
#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/file.hpp"
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
  return {.block = 4096, .stripes = {.sf = 4096}, .max_extents = {300}, .commits = true, .replace = true, .group = g};
}

/// The rows of this rank get `value`.
void write_part(matrix& a, int value) {
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < columns; ++j) a(i, j) = value;
}

bool holds(const matrix& a, int value) {
  return std::all_of(a.begin(), a.end(), [&](int v) { return v == value; });
}

}  // namespace

TEST_CASE("what all ranks have written is committed in one step, and taken back in one") {
  const group_ptr g = all_ranks();
  {
    runtime rt(small());
    matrix a(rt, common_store(), "commits/a", create, {100, columns}, with(g));
    matrix b(rt, common_store(), "commits/b", create, {60, columns}, with(g));
    write_part(a, 1);
    write_part(b, 1);
    commit({&a, &b}, {{"step", "1"}});
    CHECK(a.last_commit()->number == 1);
    CHECK(b.last_commit()->attributes.at("step") == "1");
    write_part(a, 2);
    a.resize(300);
    write_part(a, 2);
    write_part(b, 2);
    a.sync();
    CHECK(holds(a, 2));
    a.roll_back();
    CHECK(a.extent(0) == 100);
    CHECK(holds(a, 1));
    g->barrier("all have looked");
    write_part(a, 3);
    b.sync();
    CHECK(holds(b, 2));
  }
  runtime rt(small());
  const matrix a(rt, common_store(), "commits/a", open_read_only);
  const matrix b(rt, common_store(), "commits/b", open_read_only);
  CHECK(a.extent(0) == 100);
  CHECK(holds(a, 1));
  CHECK(holds(b, 1));
  g->barrier("all have looked");
}

TEST_CASE("what one rank alone writes after a roll back, or an opening, is taken back by the next opening") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  {
    matrix a(rt, common_store(), "commits/a", create, {100, columns}, with(g));
    write_part(a, 1);
    commit({&a});
  }
  for (const bool rolled_back : {true, false}) {
    matrix a(rt, common_store(), "commits/a", open, {.group = g});
    write_part(a, 2);
    a.writeback();
    if (rolled_back)
      a.roll_back();
    else
      a.close();
    if (!rolled_back) a = matrix(rt, common_store(), "commits/a", open, {.group = g});
    if (g->rank() == g->size() - 1) write_part(a, 3);
    a.writeback();
    a.close();
    matrix next(rt, common_store(), "commits/a", open, {.group = g});
    CHECK(holds(next, 1));
    g->barrier("all have looked");
  }
}

TEST_CASE("ranks that commit different arrays are told so, and nothing is committed") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  matrix a(rt, common_store(), "commits/a", create, {100, columns}, with(g));
  matrix b(rt, common_store(), "commits/b", create, {60, columns}, with(g));
  if (g->size() > 1) {
    const bool last = g->rank() == g->size() - 1;
    CHECK_THAT(message_of<usage_error>([&] { last ? commit({&b}) : commit({&a}); }), Contains("commit of"));
    CHECK_THAT(message_of<usage_error>([&] {
                 commit({&a}, {{"rank", std::to_string(g->rank())}});
               }),
               Contains("attributes"));
  }
  CHECK(a.last_commit()->number == 0);
  CHECK(b.last_commit()->number == 0);
}

TEST_CASE("a node that fails leaves the commit before, on all ranks") {
  const group_ptr g = all_ranks();
  testing::faulty_store s;
  runtime rt(small());
  matrix a(rt, s.handle, "commits/a", create, {100, columns}, with(g));
  matrix b(rt, s.handle, "commits/b", create, {60, columns}, with(g));
  write_part(a, 1);
  write_part(b, 1);
  commit({&a, &b});
  write_part(a, 2);
  write_part(b, 2);
  if (g->rank() == 0) s.fail({.call = storage::io_kind::prepare, .error = {EIO, std::generic_category()}});
  CHECK_THROWS_AS(commit({&a, &b}), io_error);
  s.clear();
  CHECK(a.last_commit()->number == 1);
  const ooc::file committed = ooc::file::open(common_store(), "commits/a");
  std::vector<int> seen(100 * columns);
  committed.read_at(0, std::as_writable_bytes(std::span(seen)));
  CHECK(std::ranges::count(seen, 1) == 100 * columns);
  g->barrier("all have looked");
  commit({&a, &b}, {{"again", "yes"}});
  CHECK(a.last_commit()->number == 2);
  CHECK(holds(a, 2));
  CHECK(holds(b, 2));
}

TEST_CASE("where the deadline of a commit passes, nobody writes to its arrays until they are opened again") {
  if (all_ranks()->size() == 1) return;
  testing::faulty_store s;
  {
    const group_ptr g = all_ranks(std::chrono::seconds(2));
    runtime rt(small());
    matrix a(rt, s.handle, "commits/a", create, {100, columns}, with(g));
    matrix b(rt, s.handle, "commits/b", create, {60, columns}, with(g));
    write_part(a, 1);
    write_part(b, 1);
    commit({&a, &b});
    write_part(a, 2);
    write_part(b, 2);
    if (g->rank() == 0) s.fail({.call = storage::io_kind::prepare, .delay = std::chrono::seconds(5)});
    bool knows = false;  // as rank 0 may, where it does not hear in time that the others have given up
    try {
      commit({&a, &b});
      knows = true;
    } catch (const io_error&) {
    }
    CHECK((!knows || g->rank() == 0));
    s.clear();
    for (matrix* m : {&a, &b}) {
      if (knows) break;
      const std::string text = message_of<io_error>([&] {
        m->scatter(std::vector<matrix::index_type>{{m->local_rows().first, 0}}, std::vector<int>{7});
        m->writeback();
      });
      CHECK_THAT(text, Contains("nobody knows whether the commit was made") && Contains("open them again"));
      m->invalidate(discard);
    }
  }
  const group_ptr g = all_ranks();
  runtime rt(small());
  matrix a(rt, common_store(), "commits/a", open, {.group = g});
  CHECK(holds(a, 2));  // rank 0 has made it, late
  CHECK(a.last_commit()->number == 2);
  g->barrier("all have looked");
}

TEST_CASE("what one rank cannot forget in a commit is an error of all, and nothing is committed") {
  const group_ptr g = all_ranks(std::chrono::seconds(10));
  if (g->size() == 1) return;
  runtime rt(small());
  testing::pinning_group<matrix> pinning(g, {{0, 0}, {1, columns}});
  matrix a(rt, common_store(), "commits/a", create, {100, columns}, with(pinning.group));
  CHECK(std::as_const(a)(0, 0) == 0);
  a.sync();
  write_part(a, 1);
  if (g->rank() == g->size() - 1) {
    pinning.calls_before = 1;  // it tells that it has come
    pinning.array = &a;
  }
  CHECK_THAT(message_of<usage_error>([&] { commit({&a}); }),
             Contains("rank " + std::to_string(g->size() - 1)) && Contains("pinned it during sync"));
  pinning.pinned.reset();
  CHECK(a.last_commit()->number == 0);
  commit({&a});
  CHECK(holds(a, 1));
  g->barrier("all have looked");
}

TEST_CASE(
    "a rank that gives up where the others pass, in any meeting of a commit, writes no more to what is committed") {
  if (all_ranks()->size() != 3) return;
  for (int meetings = 1;; ++meetings) {
    CAPTURE(meetings);
    bool gave_up = false, wrote = false;
    {
      const group_ptr g = all_ranks(std::chrono::seconds(2));
      int left = -1;  // meetings until this rank gives up; negative: it does not
      const auto meet = [&](int now) {
        if (left == 0 || (left > 0 && (left -= now) == 0))
          throw io_error(std::make_error_code(std::errc::timed_out), "this rank has given up");
      };
      const auto giving_up = std::make_shared<testing::watched_rank>(
          *g, [&](std::string_view) { meet(0); }, [&](std::string_view) { meet(1); });
      runtime rt(small());
      matrix a(rt, common_store(), "commits/a", create, {100, columns}, with(giving_up));
      write_part(a, 1);
      commit({&a});
      write_part(a, 2);
      if (g->rank() == 1) left = meetings;
      try {
        commit({&a});
      } catch (const io_error&) {
        gave_up = g->rank() == 1;
      }
      if (gave_up) try {
          a.scatter(std::vector<matrix::index_type>{{a.local_rows().first, 0}}, std::vector<int>{7});
          a.writeback();
          wrote = true;
        } catch (const io_error&) {
          a.invalidate(discard);
        }
    }
    const group_ptr g = all_ranks();
    runtime rt(small());
    const matrix a(rt, common_store(), "commits/a", open_read_only, {.group = g});
    const std::uint64_t made = a.last_commit()->number;
    CHECK(holds(a, static_cast<int>(made)));
    CHECK((!wrote || made == 1));
    std::uint64_t all[] = {gave_up};
    g->all_reduce("who has given up", all, reduction::max);
    if (all[0] == 0) {
      CHECK(made == 2);
      break;
    }
  }
}
