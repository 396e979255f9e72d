// Arrays that the ranks use together: making and opening them, parts, sync(), shared blocks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csetjmp>
#include <csignal>
#include <optional>
#include <set>
#include <thread>

#include "mpi/late_reads.hpp"
#include "mpi/pinning_group.hpp"
#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/pauses.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using testing::all_ranks;
using testing::common_store;
using testing::message_of;
using testing::soon;
using group_ptr = std::shared_ptr<process_group>;
using vector_of_doubles = ooc_array<double, 1>;

namespace {

constexpr std::size_t page = 4096 / sizeof(double);  // elements in a block

runtime_options small(unsigned read_ahead = 1) {
  runtime_options o;
  o.memory = common_store().core()->staging_bytes() + 64 * 4096;
  o.read_ahead = read_ahead;
  return o;
}

array_options<double> with(const group_ptr& g, bool owner_computes = false) {
  return {.block = 4096,
          .stripes = {.sf = 4096},  // small arrays, and parts of them, on all nodes
          .replace = true,
          .group = g,
          .owner_computes = owner_computes};
}

}  // namespace

TEST_CASE("an array is made by all ranks together and opened by all") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  {
    ooc_array<double, 2> a(rt, s, "made/a", create, {40, 1000}, with(g));
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
    runtime rt(small());
    const auto make = [&](bool replace) {
      auto o = with(g);
      o.replace = replace;
      ooc_array<double, 1> a(rt, s, "failing/a", create, {5000}, o);
      a.close();
    };
    make(true);
    CHECK_THAT(message_of<usage_error>([&] { make(false); }), Catch::Contains("exists already"));
    CHECK_THAT(message_of<error>([&] { vector_of_doubles(rt, s, "failing/none", open, with(g)); }),
               Catch::Contains("failing/none"));
  }
  // Blocks that only one rank has no memory for.
  runtime_options o = small();
  if (g->rank() == last) o.memory = s.core()->staging_bytes() + 30 * 4096;
  runtime rt(o);
  auto large = with(g);
  large.block = 8 * 4096;
  large.replace = false;
  CHECK_THAT(message_of<usage_error>([&] { vector_of_doubles(rt, s, "failing/b", create, {1'000'000}, large); }),
             Catch::Contains(g->size() > 1 ? "rank " + std::to_string(last) + ":" : "32768"));
  CHECK_NOTHROW(vector_of_doubles(rt, s, "failing/b", create, {1000}, {.block = 4096, .group = g}));
}

TEST_CASE("ranks that create with different fill values, or stripes, are all refused and told which") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store s = common_store();
  const bool last = g->rank() == g->size() - 1;
  const auto made = [&](array_options<double> o, const char* path) {
    return [&rt, &s, o, path] { vector_of_doubles(rt, s, path, create, {page}, o); };
  };
  auto o = with(g);
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
  CHECK_THROWS_WITH(vector_of_doubles(rt, s, "differ/fill", open, with(g)), Catch::Contains("there is no"));

  o = with(g);
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
  runtime rt(small());
  const store s = common_store();
  const std::size_t n = g->rank() == 1 ? 7000 : 5000;
  const std::string text = message_of<usage_error>([&] { vector_of_doubles(rt, s, "shapes/a", create, {n}, with(g)); });
  CHECK_THAT(text,
             Catch::Contains("rank 1: create of 'shapes/a'") && Catch::Contains("{7000}") && Catch::Contains("{5000}"));

  vector_of_doubles a(rt, s, "shapes/a", create, {5000}, with(g));
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
  runtime rt(small());
  const store s = common_store();
  for (const std::size_t rows : {1u, 3u, 5u, 64u, 1000u, 1001u}) {
    for (const std::size_t columns : {1u, 37u, 128u, 512u, 1000u}) {
      ooc_array<double, 2> a(rt, s, "parts/a", create, {rows, columns}, with(g));
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

TEST_CASE("sync forgets what another rank wrote, and nothing else") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store s = common_store();
  const std::size_t blocks = 8;
  vector_of_doubles a(rt, s, "sync/a", create, {blocks * page}, with(g));
  const auto sum = [&] {
    double x = 0;
    for (std::size_t b = 0; b < blocks; ++b) x += std::as_const(a)[b * page];
    return x;
  };
  CHECK(sum() == 0);
  CHECK(soon([&] { return rt.stats().bytes_read == blocks * 4096; }));
  std::uint64_t before = blocks * 4096;
  a.sync();
  for (int round = 1; round <= 3; ++round) {
    const int writer = round % g->size();
    const std::size_t block = static_cast<std::size_t>(round) * 2;
    if (g->rank() == writer) a[block * page] = 1;
    a.sync();
    CHECK(sum() == round);
    const std::uint64_t expected = before + (g->rank() == writer ? 0 : 4096);
    CHECK(soon([&] { return rt.stats().bytes_read == expected; }));
    before = expected;
  }
}

TEST_CASE("a durable sync asks each node once for all ranks, and its failure is everybody's") {
  const group_ptr g = all_ranks();
  const testing::faulty_store nodes;
  runtime rt(small());
  vector_of_doubles a(rt, nodes.handle, "durable/a", create, {8 * page * nodes.nodes.size()}, with(g));
  const auto write_part = [&](double value) {
    const auto [first, last] = a.local_rows();
    for (std::size_t i = first; i < last; ++i) a[i] = value;
  };
  const auto sees = [&](double value) {
    const bool all = std::all_of(a.data(), a.data() + a.size(), [&](double x) { return x == value; });
    g->barrier("seen");  // before anybody writes again
    return all;
  };
  write_part(1);
  a.sync();
  CHECK(nodes.calls(storage::io_kind::sync) == 0);
  write_part(2);
  a.sync(durable);
  CHECK(nodes.calls(storage::io_kind::sync) == (g->rank() == 0 ? nodes.nodes.size() : 0));
  CHECK(sees(2));
  nodes.fail({.call = storage::io_kind::sync, .times = 1, .error = std::make_error_code(std::errc::io_error)});
  write_part(3);
  const std::string text = message_of<io_error>([&] { a.sync(durable); });
  CHECK_THAT(text, Catch::Contains("'durable/a' cannot be made durable"));
  if (g->size() > 1) CHECK_THAT(text, Catch::Contains("rank 0: "));
  nodes.clear();
  a.sync(durable);
  CHECK(sees(3));
}

TEST_CASE("what was evicted earlier in the epoch is told as well") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  const std::size_t blocks = 400;  // six times the memory
  vector_of_doubles a(rt, s, "evicted/a", create, {blocks * page}, with(g));
  CHECK(std::as_const(a)[0] == 0);  // everybody has block 0
  a.sync();
  const int writer = g->size() - 1;
  if (g->rank() == writer)
    for (std::size_t b = 0; b < blocks; ++b) a[b * page + 7] = static_cast<double>(b + 1);
  a.sync();
  std::size_t wrong = 0;
  for (std::size_t b = 0; b < blocks; ++b) wrong += std::as_const(a)[b * page + 7] != static_cast<double>(b + 1);
  CHECK(wrong == 0);
}

TEST_CASE("read-ahead in flight does not bring back what another rank has written") {
  const group_ptr g = all_ranks();
  runtime rt(small(0));
  const store s = common_store();
  const std::size_t blocks = 40;
  vector_of_doubles a(rt, s, "flight/a", create, {blocks * page}, with(g));
  for (int round = 1; round <= 60; ++round) {
    const int writer = round % g->size();
    if (g->rank() == writer) {
      for (std::size_t b = 0; b < blocks; ++b) a[b * page] = round;
    } else {
      a.prefetch(a.whole());  // arrives before or after the writer's blocks, or in the middle
    }
    a.sync();
    std::size_t wrong = 0;
    for (std::size_t b = 0; b < blocks; ++b) wrong += std::as_const(a)[b * page] != round;
    REQUIRE(wrong == 0);
    a.sync();
  }
}

TEST_CASE("a load that ends after sync is dropped where another rank wrote meanwhile") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store plain = common_store();
  // This rank's view of the same store.
  std::vector<std::shared_ptr<testing::late_reads>> late;
  const store s = testing::with_nodes(
      plain, [&](const auto& node) { return late.emplace_back(std::make_shared<testing::late_reads>(node)); });
  vector_of_doubles a(rt, s, "late/a", create, {8 * page}, with(g));
  const bool reader = g->rank() != 0;
  if (reader) {
    for (const auto& n : late) n->hold();
    a.prefetch({{3 * page}, {4 * page}});
    CHECK(soon([&] {
      std::size_t held = 0;
      for (const auto& n : late) held += n->held();
      return held > 0;
    }));
  }
  MPI_Barrier(MPI_COMM_WORLD);  // everybody else has read the old element, and not yet been told
  if (!reader) a[3 * page] = 1;
  a.sync();
  for (const auto& n : late) n->release();
  CHECK(std::as_const(a)[3 * page] == 1);
  a.close();
}

TEST_CASE("the papers' form: writeback, barrier, invalidate") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  vector_of_doubles a(rt, s, "form/a", create, {16 * page}, with(g));
  const auto n = static_cast<std::size_t>(g->size());
  const auto me = static_cast<std::size_t>(g->rank());
  for (int round = 1; round <= 5; ++round) {
    for (std::size_t i = me; i < a.size(); i += n) a[i] = round * 1000.0 + static_cast<double>(i);
    a.writeback();
    MPI_Barrier(MPI_COMM_WORLD);
    a.invalidate();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < a.size(); ++i) wrong += std::as_const(a)[i] != round * 1000.0 + static_cast<double>(i);
    CHECK(wrong == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("a pinned region makes sync an error on all ranks, and nothing is lost") {
  const group_ptr g = all_ranks();
  runtime rt(small());
  const store s = common_store();
  vector_of_doubles a(rt, s, "pinned/a", create, {8 * page}, with(g));
  if (g->rank() == 0) a[3] = 5;
  {
    std::optional<pin_guard<const double>> pin;
    if (g->rank() == g->size() - 1) pin.emplace(std::as_const(a).pin({{page}, {2 * page}}));
    CHECK_THAT(message_of<usage_error>([&] { a.sync(); }), Catch::Contains("pinned"));
  }
  a.sync();
  CHECK(std::as_const(a)[3] == 5);
}

TEST_CASE("under owner_computes a neighbour's element in a shared block is an error of sync") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  const store s = common_store();
  // Fewer blocks than ranks: parts end within blocks.
  vector_of_doubles a(rt, s, "owner/a", create, {page}, with(g, true));
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
    runtime rt(small());
    const store s = common_store();
    vector_of_doubles a(rt, s, "foreign/a", create, {64 * page}, with(g, true));
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
  runtime rt(small());
  const store s = common_store();
  vector_of_doubles a(rt, s, "scattered/a", create, {64 * page}, with(g, true));
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
  runtime rt(small());
  const store s = common_store();
  vector_of_doubles a(rt, s, "whole/a", create, {64 * page}, with(g, true));
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
  runtime rt(small());
  const store s = common_store();
  const auto ranks = static_cast<std::size_t>(g->size());
  // One and a half blocks a rank: parts end within blocks.
  vector_of_doubles a(rt, s, "scattered/a", create, {3 * page * ranks / 2}, with(g, true));
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
  runtime rt(small());
  const store s = common_store();
  vector_of_doubles a(rt, s, "stats/a", create, {4 * page}, with(g));
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

TEST_CASE("what sync cannot forget, as it is pinned meanwhile, the next one forgets") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  const bool halo = GENERATE(false, true);
  runtime rt(small());
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/a", create, {8 * page}, with(pinning.group));
  CHECK(std::as_const(a)[page] == 0);
  CHECK(std::as_const(a)[3 * page] == 0);
  a.sync();
  if (g->rank() == 0) {
    a[page] = 1;
    a[3 * page] = 1;
    a.sync();
  } else {
    pinning.array = &a;
    CHECK_THAT(message_of<usage_error>([&] { a.sync(); }), Catch::Contains("pinned it during sync"));
    pinning.pinned.reset();
    a[5 * page + static_cast<std::size_t>(g->rank())] = 1;
  }
  halo ? a.sync_halo(1) : a.sync();
  CHECK(std::as_const(a)[page] == 1);
  CHECK(std::as_const(a)[3 * page] == 1);
  a.sync();
}

TEST_CASE("ranks go on together after a sync that one alone has thrown, and are told where it repeats the call alone") {
  const group_ptr g = all_ranks();
  if (g->size() < 3) return;
  const bool halo = GENERATE(false, true), repeats = GENERATE(false, true);
  runtime rt(small());
  const std::size_t rows = 2 * page * static_cast<std::size_t>(g->size());
  testing::pinning_group<vector_of_doubles> pinning(g, {{0}, {rows}});
  vector_of_doubles a(rt, common_store(), "alone/a", create, {rows}, with(pinning.group));
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) sum += std::as_const(a)[i];
  CHECK(sum == 0);
  a.sync();
  const auto sync = [&] { halo ? a.sync_halo(page) : a.sync(); };
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i) a[i] = 1;
  if (g->rank() == 1) {
    pinning.array = &a;
    const std::string told = message_of<usage_error>(sync);
    CHECK_THAT(told, Catch::Contains("another thread of rank 1 wrote to it or pinned it during sync"));
    CHECK_THAT(told, Catch::Contains("do not repeat it on this one alone"));
    pinning.pinned.reset();
  } else {
    sync();
    CHECK(std::as_const(a)[g->rank() == 0 ? last : first - 1] == 1);
  }
  std::vector<double> all(rows);
  const auto read = [&] { a.read_all({{0}, {rows}}, std::span(all)); };
  if (repeats)
    CHECK_THAT(message_of<usage_error>([&] { g->rank() == 1 ? sync() : read(); }), Catch::Contains("rank 1"));
  read();
  CHECK(std::ranges::count(all, 1.0) == static_cast<std::ptrdiff_t>(rows));
  a.sync();
  for (std::size_t i = 0; i < rows; ++i) sum += std::as_const(a)[i];
  CHECK(sum == static_cast<double>(rows));
  a.sync();
  a.close();
}

TEST_CASE("what write_all cannot forget, as it is pinned meanwhile, all throw, and the next sync forgets") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small());
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/a", create, {8 * page}, with(pinning.group));
  CHECK(std::as_const(a)[page] == 0);
  a.sync();
  const std::vector<double> ones(g->rank() == 0 ? page : 0, 1);
  const std::size_t upper = g->rank() == 0 ? 2 * page : page;
  // After the ranks have told their boxes and written back.
  pinning.calls_before = 1;
  if (g->rank() != 0) pinning.array = &a;
  CHECK_THAT(message_of<usage_error>([&] {
               a.write_all({{page}, {upper}}, std::span(ones));
             }),
             Catch::Contains("rank 1 wrote to it or pinned it during write_all"));
  pinning.pinned.reset();
  a.sync();
  CHECK(std::as_const(a)[page] == 1);
  a.sync();
}

TEST_CASE("what is written where a write_all could not forget is none of another thread's for the next") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;  // it would write the old block
  runtime rt(small());
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/b", create, {8 * page}, with(pinning.group));
  CHECK(std::as_const(a)[page] == 0);
  a.sync();
  const std::vector<double> ones(g->rank() == 0 ? page : 0, 1), twos(ones.size(), 2);
  const auto write_page = [&](std::size_t n, const std::vector<double>& numbers) {
    a.write_all({{n * page}, {n * page + numbers.size()}}, std::span(numbers));
  };
  pinning.calls_before = 1;
  const bool owes = g->rank() == g->size() - 1;
  if (owes) pinning.array = &a;
  CHECK_THROWS_AS(write_page(1, ones), usage_error);
  pinning.pinned.reset();
  if (owes) a[page + 1] = 7;
  write_page(3, twos);
  a.sync();
  CHECK(std::as_const(a)[page] == 1);
  CHECK(std::as_const(a)[page + 1] == 7);
  CHECK(std::as_const(a)[3 * page] == 2);
  g->barrier("all have looked");
}

TEST_CASE("ranks wait together for a writer that is not one of them, longer than their deadline") {
  const group_ptr all = all_ranks();
  if (all->size() < 3) return;
  const int stranger = all->size() - 1;
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, all->rank() == stranger, all->rank(), &some);
  {
    const group_ptr g = mpi_group(some, {.deadline = std::chrono::seconds(3)});
    runtime rt(small());
    const store s = common_store();
    const vector_of_doubles::index_type shape{page};
    const auto waiting = [&](std::chrono::milliseconds patience) {
      return array_options<double>{.wait_for_writer = patience, .group = g};
    };
    std::optional<vector_of_doubles> a;
    if (all->rank() == stranger) a.emplace(rt, s, "waiting/a", create, shape, with(nullptr));
    all->barrier("it is there");
    if (all->rank() == stranger) {
      testing::let_pass(std::chrono::milliseconds(4500));  // longer than the deadline of the others
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
