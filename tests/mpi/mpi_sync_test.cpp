// sync(): what ranks forget of what others wrote, what cannot be forgotten, and what fails.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

#include "mpi/late_reads.hpp"
#include "mpi/pinning_group.hpp"
#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/ooc_array.hpp"

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

TEST_CASE("sync forgets what another rank wrote, and nothing else") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  runtime rt(small(1));
  const store s = common_store();
  const std::size_t blocks = 8;
  vector_of_doubles a(rt, s, "sync/a", create, {blocks * page}, small_array(g));
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
  runtime rt(small(1));
  vector_of_doubles a(rt, nodes.handle, "durable/a", create, {8 * page * nodes.nodes.size()}, small_array(g));
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
  runtime rt(small(1));
  const store s = common_store();
  const std::size_t blocks = 400;  // six times the memory
  vector_of_doubles a(rt, s, "evicted/a", create, {blocks * page}, small_array(g));
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
  runtime rt(small());
  const store s = common_store();
  const std::size_t blocks = 40;
  vector_of_doubles a(rt, s, "flight/a", create, {blocks * page}, small_array(g));
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
  runtime rt(small(1));
  const store plain = common_store();
  // This rank's view of the same store.
  std::vector<std::shared_ptr<testing::late_reads>> late;
  const store s = testing::with_nodes(
      plain, [&](const auto& node) { return late.emplace_back(std::make_shared<testing::late_reads>(node)); });
  vector_of_doubles a(rt, s, "late/a", create, {8 * page}, small_array(g));
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
  runtime rt(small(1));
  const store s = common_store();
  vector_of_doubles a(rt, s, "form/a", create, {16 * page}, small_array(g));
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
  runtime rt(small(1));
  const store s = common_store();
  vector_of_doubles a(rt, s, "pinned/a", create, {8 * page}, small_array(g));
  if (g->rank() == 0) a[3] = 5;
  {
    std::optional<pin_guard<const double>> pin;
    if (g->rank() == g->size() - 1) pin.emplace(std::as_const(a).pin({{page}, {2 * page}}));
    CHECK_THAT(message_of<usage_error>([&] { a.sync(); }), Catch::Contains("pinned"));
  }
  a.sync();
  CHECK(std::as_const(a)[3] == 5);
}

TEST_CASE("what sync cannot forget, as it is pinned meanwhile, the next one forgets") {
  const group_ptr g = all_ranks();
  if (g->size() == 1) return;
  const bool halo = GENERATE(false, true);
  runtime rt(small(1));
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/a", create, {8 * page}, small_array(pinning.group));
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
  runtime rt(small(1));
  const std::size_t rows = 2 * page * static_cast<std::size_t>(g->size());
  testing::pinning_group<vector_of_doubles> pinning(g, {{0}, {rows}});
  vector_of_doubles a(rt, common_store(), "alone/a", create, {rows}, small_array(pinning.group));
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
  runtime rt(small(1));
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/a", create, {8 * page}, small_array(pinning.group));
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
  runtime rt(small(1));
  testing::pinning_group<vector_of_doubles> pinning(g, {{page}, {2 * page}});
  vector_of_doubles a(rt, common_store(), "owed/b", create, {8 * page}, small_array(pinning.group));
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
