// Arrays that the ranks use together: making and opening them, parts, owner_computes, statistics.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csetjmp>
#include <csignal>
#include <optional>
#include <set>
#include <thread>

#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/pauses.hpp"

using namespace ooc;
using testing::all_ranks;
using testing::common_store;
using testing::message_of;
using testing::page;
using testing::small;
using testing::small_array;
using testing::soon;
using group_ptr = std::shared_ptr<process_group>;
using vector_of_doubles = ooc_array<double, 1>;

TEST_CASE("an array is made by all ranks together and opened by all") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  {
    ooc_array<double, 2> a(rt, s, "made/a", create, {40, 1000}, small_array(g));
    const auto [first, last] = a.local_rows();
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < 1000; ++j) a[i][j] = static_cast<double>(i * 1000 + j);
    a.close();
  }
  const ooc_array<double, 2> a(rt, s, "made/a", open_read_only, {.group = g});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 1000; ++j) wrong += a[i][j] != static_cast<double>(i * 1000 + j);
  CHECK(wrong == 0);
}

TEST_CASE("a rank's part of a small array is of several blocks") {
  const group_ptr g = all_ranks();
  runtime rt({.memory = common_store().core()->staging_bytes() + (64 << 20)});
  const auto parts = static_cast<std::uint64_t>(g->size());
  const auto block_of = [&](std::size_t pages, std::uint64_t block) {
    return vector_of_doubles(rt, common_store(), "several/a", create, {pages * page},
                             {.block = block, .replace = true, .group = g})
        .block_bytes();
  };
  constexpr std::uint64_t mib = 1 << 20, all = 8 * mib;
  const std::uint64_t eighth = all / (8 * parts);
  CHECK(block_of(all / 4096, 0) ==
        (parts == 1 ? 2 * mib : std::max<std::uint64_t>((eighth + 4095) / 4096 * 4096, 64 << 10)));
  CHECK(block_of(1, 0) == 4096);
  CHECK(block_of(all / 4096, mib) == mib);
}

TEST_CASE("as many blocks as there are ranks go to as many nodes, and are not cut for more") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt({.memory = s.core()->staging_bytes() + (64 << 20)});
  const std::size_t ranks = static_cast<std::size_t>(g->size());
  constexpr std::uint64_t block = 256 << 10;
  const vector_of_doubles a(rt, s, "stripes/a", create, {32 * block / sizeof(double)},
                            {.block = block, .replace = true, .group = g});
  const striping dealt = a.stripes();
  std::set<std::uint32_t> reached;
  for (std::uint64_t at = 0; at < ranks * block; at += 4096) reached.insert(dealt.node_of(at, s.nodes()));
  CHECK(reached.size() >= std::min<std::size_t>(s.nodes(), ranks));
  CHECK(dealt.sf >= std::min<std::uint64_t>(block / 2, ranks * block / s.nodes()));
}

TEST_CASE("what one rank cannot do fails alike on all, and leaves nothing behind") {
  const group_ptr g = all_ranks();
  const int last = g->size() - 1;
  const store s = common_store();
  {
    runtime rt(small(1));
    const auto make = [&](bool replace) {
      auto o = small_array(g);
      o.replace = replace;
      ooc_array<double, 1> a(rt, s, "failing/a", create, {5000}, o);
      a.close();
    };
    make(true);
    CHECK_THAT(message_of<usage_error>([&] { make(false); }), Catch::Contains("exists already"));
    CHECK_THAT(message_of<error>([&] { vector_of_doubles(rt, s, "failing/none", open, small_array(g)); }),
               Catch::Contains("failing/none"));
  }
  // Blocks that only one rank has no memory for.
  runtime_options o = small(1);
  if (g->rank() == last) o.memory = s.core()->staging_bytes() + 30 * 4096;
  runtime rt(o);
  auto large = small_array(g);
  large.block = 8 * 4096;
  large.replace = false;
  CHECK_THAT(message_of<usage_error>([&] { vector_of_doubles(rt, s, "failing/b", create, {1'000'000}, large); }),
             Catch::Contains(g->size() > 1 ? "rank " + std::to_string(last) + ":" : "32768"));
  CHECK_NOTHROW(vector_of_doubles(rt, s, "failing/b", create, {1000}, {.block = 4096, .group = g}));
}

TEST_CASE("ranks that create with different fill values, or stripes, are all refused and told which") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small(1));
  const store s = common_store();
  const bool last = g->rank() == g->size() - 1;
  const auto made = [&](array_options<double> o, const char* path) {
    return [&rt, &s, o, path] { vector_of_doubles(rt, s, path, create, {page}, o); };
  };
  auto o = small_array(g);
  o.fill = last ? 2.0 : 1.0;
  const std::string of_fill = message_of<usage_error>(made(o, "differ/fill"));
  CHECK_THAT(of_fill, Catch::Contains("'differ/fill'") && Catch::Contains("fill bytes 000000000000f03f") &&
                          Catch::Contains("fill bytes 0000000000000040"));
  o.fill = last ? std::optional<double>() : 1.0;
  CHECK_THAT(message_of<usage_error>(made(o, "differ/fill")), Catch::Contains("fill bytes"));
  o.fill = {};
  o.stripes.sf = last ? 8192 : 4096;
  CHECK_THAT(message_of<usage_error>(made(o, "differ/fill")),
             Catch::Contains("stripe size 4096") && Catch::Contains("stripe size 8192"));
  CHECK_THROWS_WITH(vector_of_doubles(rt, s, "differ/fill", open, small_array(g)), Catch::Contains("there is no"));

  o = small_array(g);
  o.fill = last ? std::optional<double>() : 0.0;  // the same
  CHECK_NOTHROW(made(o, "differ/not")());
  using numbers = std::array<std::uint64_t, 8>;
  array_options<numbers> large;
  large.replace = true;
  large.group = g;
  large.fill = numbers{1, 2, 3, 4, 5, 6, 7, last ? 9u : 8u};
  CHECK_THAT(message_of<usage_error>([&] { ooc_array<numbers, 1>(rt, s, "differ/large", create, {page}, large); }),
             Catch::Contains("fill bytes 0100000000000000"));
}

TEST_CASE("a rank that passes another shape is told which rank passed what") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small(1));
  const store s = common_store();
  const std::size_t n = g->rank() == 1 ? 7000 : 5000;
  const std::string text =
      message_of<usage_error>([&] { vector_of_doubles(rt, s, "shapes/a", create, {n}, small_array(g)); });
  CHECK_THAT(text,
             Catch::Contains("rank 1: create of 'shapes/a'") && Catch::Contains("{7000}") && Catch::Contains("{5000}"));

  vector_of_doubles a(rt, s, "shapes/a", create, {5000}, small_array(g));
  CHECK_THAT(message_of<usage_error>([&] {
               if (g->rank() == 1)
                 a.close();
               else
                 a.sync();
             }),
             Catch::Contains("rank 1: close of 'shapes/a'") && Catch::Contains("sync of 'shapes/a'"));
  CHECK_NOTHROW(a.sync());
}

TEST_CASE("parts are disjoint, make up the array, and end where blocks end if that is even") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  for (const std::size_t rows : {1u, 3u, 5u, 64u, 1000u, 1001u}) {
    for (const std::size_t columns : {1u, 37u, 128u, 512u, 1000u}) {
      ooc_array<double, 2> a(rt, s, "parts/a", create, {rows, columns}, small_array(g));
      std::size_t next = 0;
      bool even = true;
      for (int r = 0; r < g->size(); ++r) {
        const box<2> part = a.part(r);
        CHECK(part.lower[0] == next);
        CHECK((part.lower[1] == 0 && part.upper[1] == columns));
        even = even && part.extent(0) * static_cast<std::size_t>(g->size()) <=
                           rows * 5 / 4 + static_cast<std::size_t>(g->size());
        next = part.upper[0];
      }
      CHECK(next == rows);
      CHECK(even);
      CHECK(a.part(g->rank()) == a.local_box());
      if (rows * columns / page >= 16 * static_cast<std::size_t>(g->size()) && page % columns == 0)
        CHECK(a.local_box().lower[0] * columns % page == 0);
    }
  }
}

TEST_CASE("under owner_computes a neighbour's element in a shared block is an error of sync") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small(1));
  const store s = common_store();
  // Fewer blocks than ranks: parts end within blocks.
  vector_of_doubles a(rt, s, "owner/a", create, {page}, small_array(g, true));
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i) a[i] = static_cast<double>(i);
  CHECK_NOTHROW(a.sync());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < page; ++i) wrong += std::as_const(a)[i] != static_cast<double>(i);
  CHECK(wrong == 0);
  a.sync();

  const std::size_t theirs = a.part(1).lower[0];
  if (g->rank() == 0) a[theirs] = -1;
  CHECK_THAT(message_of<usage_error>([&] { a.sync(); }),
             Catch::Contains("{" + std::to_string(theirs) + "}") && Catch::Contains("rank 0"));
  if (g->rank() == 0) a[theirs] = static_cast<double>(theirs);
  CHECK_NOTHROW(a.sync());
}

namespace {

std::jmp_buf after_fault;
void on_fault(int) { siglongjmp(after_fault, 1); }

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("under owner_computes a write to a block of another rank's part is a fault") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  struct sigaction before {
  }, ours{};
  ours.sa_handler = on_fault;
  ::sigaction(SIGSEGV, &ours, &before);
  {
    runtime rt(small(1));
    const store s = common_store();
    vector_of_doubles a(rt, s, "foreign/a", create, {64 * page}, small_array(g, true));
    const std::size_t theirs = a.part((g->rank() + 1) % g->size()).lower[0];
    volatile bool refused = false;
    CHECK(std::as_const(a)[theirs] == 0);  // reading is allowed
    if (sigsetjmp(after_fault, 1) == 0)
      a[theirs] = 1;
    else
      refused = true;
    CHECK(refused);
    CHECK_THROWS_WITH(a.pin({{theirs}, {theirs + 1}}), Catch::Contains("owner_computes"));
    a.sync();
    CHECK(std::as_const(a)[theirs] == 0);
  }
  ::sigaction(SIGSEGV, &before, nullptr);
}
#endif

TEST_CASE("under owner_computes a scatter goes to the rank's own part, and all ranks see it") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  vector_of_doubles a(rt, s, "scattered/a", create, {64 * page}, small_array(g, true));
  const auto [first, last] = a.local_rows();
  std::vector<std::size_t> mine;
  std::vector<double> values;
  for (std::size_t i = first; i < last; i += 777) mine.push_back(i), values.push_back(i + 0.5);
  a.prefetch({{first}, {last}});  // some blocks are in memory, some are not
  a.scatter(mine, values);
  if (g->size() > 1) {
    const std::vector<std::size_t> theirs = {a.part((g->rank() + 1) % g->size()).lower[0]};
    const std::vector<double> one = {1};
    CHECK_THROWS_WITH(a.scatter(theirs, one), Catch::Contains("scatter() of array 'scattered/a'") &&
                                                  Catch::Contains("{" + std::to_string(theirs[0]) + "}") &&
                                                  Catch::Contains("owner_computes"));
  }
  a.sync();
  std::size_t wrong = 0;
  for (int r = 0; r < g->size(); ++r) {
    const auto [from, to] = std::pair(a.part(r).lower[0], a.part(r).upper[0]);
    for (std::size_t i = from; i < to; ++i) wrong += std::as_const(a)[i] != ((i - from) % 777 == 0 ? i + 0.5 : 0.0);
  }
  CHECK(wrong == 0);
}

TEST_CASE("under owner_computes blocks within the part are sent whole, and need not be read first") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  vector_of_doubles a(rt, s, "whole/a", create, {64 * page}, small_array(g, true));
  const auto [first, last] = a.local_rows();
  a.overwrite(a.whole());
  const std::uint64_t read = rt.stats().bytes_read;
  for (std::size_t i = first; i < last; ++i) a[i] = static_cast<double>(i);
  a.sync();
  // Only a block that two parts share is read.
  CHECK(rt.stats().bytes_read - read <= (g->size() == 1 ? 0 : 2 * 4096));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) wrong += std::as_const(a)[i] != static_cast<double>(i);
  CHECK(wrong == 0);
}

TEST_CASE("under owner_computes scattered changes of a block that parts share are sent as one piece") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  const auto ranks = static_cast<std::size_t>(g->size());
  // One and a half blocks a rank: parts end within blocks.
  vector_of_doubles a(rt, s, "scattered/a", create, {3 * page * ranks / 2}, small_array(g, true));
  const auto [first, last] = a.local_rows();
  const std::uint64_t before = s.stats().write_regions;
  for (std::size_t i = first; i < last; i += 2) a[i] = static_cast<double>(i);
  a.sync();
  CHECK(s.stats().write_regions - before <= 3);  // one for each block that the part lies in
  std::size_t wrong = 0;
  for (int r = 0; r < g->size(); ++r) {
    const auto part = a.part(r);
    for (std::size_t i = part.lower[0]; i < part.upper[0]; ++i)
      wrong += std::as_const(a)[i] != ((i - part.lower[0]) % 2 == 0 ? static_cast<double>(i) : 0);
  }
  CHECK(wrong == 0);
}

TEST_CASE("statistics are summed over the ranks, with what was invalidated and read again") {
  const group_ptr g = all_ranks();
  runtime rt(small(1));
  const store s = common_store();
  vector_of_doubles a(rt, s, "stats/a", create, {4 * page}, small_array(g));
  CHECK(std::as_const(a)[0] == 0);
  if (g->rank() == 0) a[1] = 1;
  a.sync();
  CHECK(std::as_const(a)[1] == 1);
  CHECK(soon([&] { return rt.stats().bytes_reread == (g->rank() == 0 ? 0u : 4096u); }));
  const runtime_stats all = rt.stats(*g);
  const auto others = static_cast<std::uint64_t>(g->size() - 1);
  CHECK(all.blocks_invalidated == others);
  CHECK(all.bytes_invalidated == others * 4096);
  CHECK(all.bytes_reread == others * 4096);
  CHECK(all.bytes_written == sizeof(double) * (g->size() > 1 ? 1 : 512));
}

TEST_CASE("ranks wait together for a writer that is not one of them, longer than their deadline") {
  const group_ptr all = all_ranks();
  if (all->size() < 3 || all->size() > 4) return;  // more may share two processors for longer than the deadline
  const int stranger = all->size() - 1;
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, all->rank() == stranger, all->rank(), &some);
  {
    const group_ptr g = mpi_group(some, {.deadline = std::chrono::seconds(5)});
    runtime rt(small(1));
    const store s = common_store();
    const vector_of_doubles::index_type shape{page};
    const auto waiting = [&](std::chrono::milliseconds patience) {
      return array_options<double>{.wait_for_writer = patience, .group = g};
    };
    std::optional<vector_of_doubles> a;
    if (all->rank() == stranger) a.emplace(rt, s, "waiting/a", create, shape, small_array(nullptr));
    all->barrier("it is there");
    if (all->rank() == stranger) {
      testing::let_pass(std::chrono::milliseconds(6500));  // longer than the deadline of the others
      (*a)[3] = 5;
      a.reset();
    } else {
      a.emplace(rt, s, "waiting/a", open, waiting(std::chrono::seconds(60)));
      CHECK(std::as_const(*a)[3] == 5);
      g->barrier("all have looked");
      a.reset();
      // Nobody waits longer than is said.
      all->barrier("closed");
    }
    if (all->rank() == stranger) {
      all->barrier("closed");
      a.emplace(rt, s, "waiting/a", open);
    }
    all->barrier("open again");
    if (all->rank() != stranger)
      CHECK_THAT(message_of<usage_error>(
                     [&] { a.emplace(rt, s, "waiting/a", open, waiting(std::chrono::milliseconds(500))); }),
                 Catch::Contains("was waited for during 0.5 s"));
    all->barrier("all have looked");
  }
  MPI_Comm_free(&some);
}
