// The checking mode: what sync() reports of accesses that no sync() orders, and what it does not.
#include <catch2/catch.hpp>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/service/store_core.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using testing::all_ranks;
using testing::common_store;

namespace {

constexpr std::size_t page = 4096 / sizeof(double);

runtime_options small() {
  runtime_options o;
  o.memory = common_store().core()->staging_bytes() + 64 * 4096;
  return o;
}

/// Arrays with checking, and rank by rank what happens to them.
struct setting {
  std::shared_ptr<process_group> g = all_ranks();
  runtime rt{small()};
  store s = common_store();

  bool alone() const { return g->size() == 1; }
  bool first() const { return g->rank() == 0; }
  bool last() const { return g->rank() == g->size() - 1; }
  std::string last_rank() const { return std::to_string(g->size() - 1); }

  template <std::size_t N, class Layout = layout_right>
  ooc_array<double, N, Layout> make(const std::array<std::size_t, N>& extents, array_options<double> o = {}) {
    o.block = 4096;
    o.replace = true;
    o.group = g;
    o.checking = check_conflicts;
    return {rt, s, "checked/a", create, extents, o};
  }
};

template <class Array>
std::string conflict_of(Array& a) {
  return testing::conflict_of([&] { a.sync(); });
}

}  // namespace

TEST_CASE("two ranks that write one element are reported with array, box and ranks") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<2>({20, 1000});
  if (t.first()) a[3][5] = 1, a[4][7] = 1, a[9][9] = 1;
  if (t.last()) a[3][5] = 2, a[4][7] = 2, a[10][10] = 1;
  CHECK_THAT(conflict_of(a), Catch::Contains("'checked/a'") &&
                                 Catch::Contains("ranks 0 and " + t.last_rank() + " both wrote") &&
                                 Catch::Contains("{3, 5} to {5, 8}"));
  CHECK(conflict_of(a).empty());  // the next epoch is another one
}

TEST_CASE("what is scattered and gathered is noted element by element") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({100 * page});
  using indices = std::vector<std::size_t>;
  std::vector<double> two(2);
  // Side by side in blocks that both use: one in memory, one that is out.
  a.prefetch({{0}, {1}});
  if (t.first()) a.scatter(indices{3, 50 * page}, two);
  if (t.last()) a.gather(indices{4, 50 * page + 1}, two);
  CHECK(conflict_of(a).empty());
  if (t.first()) a.scatter(indices{4, 50 * page + 1}, two);
  if (t.last()) a.gather(indices{3, 50 * page + 1}, two);
  CHECK_THAT(conflict_of(a), Catch::Contains(" wrote ") && Catch::Contains(" read ") &&
                                 Catch::Contains("{" + std::to_string(50 * page + 1) + "}"));
}

TEST_CASE("a durable sync reports conflicts as well, on all ranks, and the next one finds none") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({1000});
  if (t.first() || t.last()) a[7] = 1.0 + t.g->rank();
  const auto sync = [&] { a.sync(durable); };
  CHECK_THAT(testing::conflict_of(sync), Catch::Contains("'checked/a'") && Catch::Contains("{7} to {8}"));
  CHECK(testing::conflict_of(sync).empty());
}

TEST_CASE("a conflict is found in blocks that left memory, and in tiles") {
  setting t;
  if (t.alone()) return;
  {
    auto a = t.make<1>({300 * page});
    if (t.first() || t.last())
      for (std::size_t i = 0; i < 300; ++i) a[i * page + (t.first() && i != 7 ? 1 : 0)] = 1.0 + t.g->rank();
    CHECK_THAT(conflict_of(a), Catch::Contains("{3584} to {3585}"));
  }
  auto a = t.make<2, layout_tiled>({64, 64}, {.tile = {16, 32}});
  if (t.first() || t.last()) a[17][40] = 1.0 + t.g->rank();
  CHECK_THAT(conflict_of(a), Catch::Contains("{17, 40} to {18, 41}"));
}

TEST_CASE("different elements of one block are no conflict") {
  setting t;
  auto a = t.make<1>({4 * page});
  const auto n = static_cast<std::size_t>(t.g->size());
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = static_cast<std::size_t>(t.g->rank()); i < a.size(); i += n) a[i] = round + 1;
    CHECK(conflict_of(a).empty());
  }
}

TEST_CASE("a read of a block that another rank writes is reported, also if it had been read before") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({4 * page});
  const auto sum = [&] { return std::as_const(a)[0] + std::as_const(a)[page]; };
  CHECK(sum() == 0);
  CHECK(conflict_of(a).empty());
  CHECK(sum() == 0);
  CHECK(conflict_of(a).empty());
  if (t.last()) CHECK(sum() == 0);
  if (t.first()) a[page + 3] = 1;
  CHECK_THAT(conflict_of(a), Catch::Contains("rank " + t.last_rank() + " read blocks in which rank 0 wrote") &&
                                 Catch::Contains("{515} to {516}"));
}

TEST_CASE("through at() reads are known by element") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({4 * page});
  if (t.last()) CHECK(std::as_const(a).at(page + 2) == 0);
  if (t.first()) a[page + 3] = 1;
  CHECK(conflict_of(a).empty());
  if (t.last()) static_cast<void>(std::as_const(a).at(page + 2));
  if (t.first()) a.at(page + 2) = 1;
  CHECK_THAT(conflict_of(a),
             Catch::Contains("rank " + t.last_rank() + " read through at()") && Catch::Contains("{514} to {515}"));
}

TEST_CASE("a stencil on parts of its own has no conflicts") {
  setting t;
  const std::size_t n = 100;
  auto a = t.make<2>({n, n}, {.owner_computes = true});
  array_options<double> o{.block = 4096, .replace = true, .group = t.g, .owner_computes = true};
  o.checking = check_conflicts;
  ooc_array<double, 2> b(t.rt, t.s, "checked/b", create, {n, n}, o);
  const auto [first, last] = a.local_rows();
  for (int k = 0; k < 4; ++k) {
    auto& from = k % 2 ? b : a;
    auto& to = k % 2 ? a : b;
    for (std::size_t i = std::max<std::size_t>(first, 1); i < std::min(last, n - 1); ++i)
      for (std::size_t j = 1; j + 1 < n; ++j)
        to[i][j] = 1 + std::as_const(from)[i - 1][j] + std::as_const(from)[i + 1][j];
    CHECK(conflict_of(to).empty());
    CHECK(conflict_of(from).empty());
  }
}

TEST_CASE("what a rank wrote or read before its own writeback and invalidate is not forgotten") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({4 * page});
  const auto start_anew = [&] {
    a.writeback();
    a.invalidate();
  };
  SECTION("one wrote and started anew") {
    if (t.first()) a[7] = 1, start_anew();
    if (t.last()) a[7] = 2;
    CHECK_THAT(conflict_of(a), Catch::Contains("both wrote") && Catch::Contains("{7} to {8}"));
  }
  SECTION("all wrote and started anew") {
    if (t.first() || t.last()) a[7] = 1.0 + t.g->rank();
    start_anew();
    CHECK_THAT(conflict_of(a), Catch::Contains("both wrote") && Catch::Contains("{7} to {8}"));
  }
  SECTION("one read and started anew") {
    if (t.last()) {
      CHECK(std::as_const(a)[7] == 0);
      start_anew();
    }
    t.g->barrier("the last rank has read");
    if (t.first()) a[8] = 1;
    CHECK_THAT(conflict_of(a), Catch::Contains("read blocks") && Catch::Contains("{8} to {9}"));
  }
  CHECK(conflict_of(a).empty());
}

TEST_CASE("a conflict outside the halo is reported once, and what is written there later again") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({40 * page * static_cast<std::size_t>(t.g->size())});
  const std::size_t far = a.part(0).lower[0] + 7;
  const auto halo = [&] { return testing::conflict_of([&] { a.sync_halo(); }); };
  const auto both_write = [&](double value) {
    if (t.first() || t.last()) a[far] = value + t.g->rank();
  };
  both_write(1);
  CHECK_THAT(halo(), Catch::Contains("both wrote") && Catch::Contains("{7} to {8}"));
  CHECK(halo().empty());
  SECTION("at sync") {}
  SECTION("both write once more") {
    both_write(100);
    CHECK_THAT(halo(), Catch::Contains("both wrote"));
  }
  SECTION("one of them writes once more") {
    if (t.last()) a[far] = -1;
    CHECK_THAT(conflict_of(a), Catch::Contains("both wrote"));
  }
  CHECK(conflict_of(a).empty());
  both_write(200);
  CHECK_FALSE(conflict_of(a).empty());
}

TEST_CASE("what one rank wrote outside the halo is compared with what another does before sync") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({40 * page * static_cast<std::size_t>(t.g->size())});
  if (t.first()) a[7] = 1;
  a.sync_halo();
  SECTION("a write") {
    if (t.last()) a[7] = 2;
    CHECK_THAT(conflict_of(a), Catch::Contains("both wrote"));
  }
  SECTION("a read, each time") {
    const auto halo = [&] { return testing::conflict_of([&] { a.sync_halo(); }); };
    for (int n = 0; n < 2; ++n) {
      if (t.last()) static_cast<void>(std::as_const(a).at(7));
      CHECK_THAT(halo(), Catch::Contains("read through at()"));
    }
    CHECK(conflict_of(a).empty());
  }
}

TEST_CASE("close reports conflicts on all ranks, and then closes") {
  setting t;
  if (t.alone()) return;
  auto a = t.make<1>({1000});
  if (t.first() || t.last()) a[7] = 1.0 + t.g->rank();
  CHECK_THAT(testing::conflict_of([&] { a.close(); }), Catch::Contains("'checked/a'") && Catch::Contains("{7} to {8}"));
  CHECK(a.is_open());
  CHECK(testing::conflict_of([&] { a.close(); }).empty());
  CHECK_FALSE(a.is_open());
  auto b = t.make<1>({1000});
  if (t.first()) b[7] = 1;
  b.close();
  CHECK_FALSE(b.is_open());
}

TEST_CASE("random writes: conflicts are reported exactly where two ranks wrote") {
  setting t;
  if (t.alone()) return;
  std::mt19937_64 g = testing::common_source(77);
  auto a = t.make<1>({20 * page});
  double value = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<int> writers(a.size(), -1);
    bool conflict = false;
    for (std::uint64_t n = testing::between(g, 1, 60); n > 0; --n) {
      const std::size_t at = 17 * testing::between(g, 0, 400);
      const int who = static_cast<int>(testing::between(g, 0, static_cast<std::uint64_t>(t.g->size()) - 1));
      value += 1;
      conflict = conflict || (writers[at] >= 0 && writers[at] != who);
      writers[at] = who;
      if (t.g->rank() == who) a[at] = value;
      if (testing::between(g, 0, 9) == 0 && t.g->rank() == who) {
        a.writeback();
        a.invalidate();
      }
    }
    CHECK(conflict_of(a).empty() == !conflict);
  }
}
