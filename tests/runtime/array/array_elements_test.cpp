// gather(), scatter(), accumulate() and prefetch() of several boxes.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/faulty_io_service.hpp"
#include "support/random_seed.hpp"
#include "support/random_source.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

using indices = std::vector<std::size_t>;

constexpr std::size_t in_block = 64_KiB / sizeof(double);

/// A vector of 64 blocks of 64 KiB, of which memory holds some 12, on two nodes that may be made to
/// fail; element i is i.  Nothing is in memory.
struct listed_vector {
  memory_store inner{2};
  std::vector<std::shared_ptr<storage::faulty_io_service>> nodes;
  store s = [this] {
    storage::striped_file::nodes all;
    for (const auto& n : inner.nodes)
      all.push_back(nodes.emplace_back(std::make_shared<storage::faulty_io_service>(n)));
    return store(std::make_shared<storage::store_core>("memory:", "test", inner.metadata, all));
  }();
  runtime rt{memory(1_MiB)};
  ooc_array<double, 1> a{rt, s, "a", create, {64 * in_block}, {.block = 64_KiB}};

  listed_vector() {
    std::iota(a.begin(), a.end(), 0.0);
    forget();
    a.advise(access_pattern::random);  // a request is one that the test has caused
  }
  void forget() {
    a.writeback();
    a.invalidate();
  }
  std::uint64_t requests() const {
    std::uint64_t n = 0;
    for (const auto& node : nodes) n += node->calls(storage::io_kind::read) + node->calls(storage::io_kind::write);
    return n;
  }
  void fail(storage::io_kind call) {
    for (const auto& n : nodes) n->add({.call = call, .error = std::make_error_code(std::errc::io_error)});
  }
  void mend() {
    for (const auto& n : nodes) n->clear();
  }
  std::vector<double> gathered(const indices& from) const {
    std::vector<double> out(from.size());
    a.gather(from, out);
    return out;
  }
};

/// One element of each block, in no order.
indices one_of_each_block() {
  indices all;
  for (std::size_t b = 0; b < 64; ++b) all.push_back((b * 37 % 64) * in_block + b * 11);
  return all;
}

std::vector<double> as_doubles(const indices& i) { return {i.begin(), i.end()}; }

}  // namespace

TEST_CASE("gather asks each node once for elements of many blocks, and loads none of them") {
  listed_vector f;
  const indices wanted = one_of_each_block();
  const std::uint64_t before = f.requests();
  const runtime_stats then = f.rt.stats();
  CHECK(f.gathered(wanted) == as_doubles(wanted));
  CHECK(f.requests() - before == 2);
  CHECK(f.rt.stats().bytes_read == then.bytes_read);
  CHECK(f.rt.stats().faults == then.faults);
}

TEST_CASE("gather takes what is in memory from there, modified or not") {
  listed_vector f;
  const indices wanted = {5, 3, in_block + 1, 3, 2 * in_block};
  CHECK(f.a[3] == 3);
  f.a[in_block + 1] = -1;
  CHECK(f.a[2 * in_block] == 2.0 * in_block);
  const std::uint64_t before = f.requests();
  CHECK(f.gathered(wanted) == std::vector<double>{5, 3, -1, 3, 2.0 * in_block});
  CHECK(f.requests() == before);
}

TEST_CASE("gather loads a block of which it wants most") {
  listed_vector f;
  indices wanted;
  for (std::size_t i = 0; i < in_block; i += 100) wanted.push_back(i);
  CHECK(f.gathered(wanted) == as_doubles(wanted));
  const std::uint64_t before = f.requests();
  CHECK(f.a[1] == 1);
  CHECK(f.requests() == before);
}

TEST_CASE("scatter writes elements past the blocks, and the last of several values wins") {
  listed_vector f;
  indices to = one_of_each_block();
  std::vector<double> values;
  for (const std::size_t i : to) values.push_back(-static_cast<double>(i));
  to.push_back(to.front());
  values.push_back(0.5);
  values.front() = 9;
  const std::uint64_t before = f.requests();
  f.a.scatter(to, values);
  CHECK(f.a.dirty_blocks() == 0);
  values.front() = 0.5;
  CHECK(f.gathered(to) == values);
  CHECK(f.requests() - before <= 8);  // a chunk that is written in part is read before, on the node
  for (std::size_t n = 0; n < to.size(); ++n) CHECK(f.a[to[n]] == values[n]);
  CHECK(f.a[to[1] + 1] == static_cast<double>(to[1] + 1));
}

TEST_CASE("scatter modifies blocks that are in memory there") {
  listed_vector f;
  CHECK(f.a[0] == 0);
  f.a[in_block] = 7;
  const std::uint64_t before = f.requests();
  f.a.scatter(indices{1, in_block + 1}, std::vector<double>{-1, -2});
  CHECK(f.requests() == before);
  CHECK(f.a.dirty_blocks() == 2);
  f.forget();
  CHECK(f.gathered({0, 1, in_block, in_block + 1}) == std::vector<double>{0, -1, 7, -2});
}

TEST_CASE("accumulate applies every value, also of one element, in order") {
  listed_vector f;
  indices to = one_of_each_block();
  to.insert(to.end(), {4, 4, 4});
  std::vector<double> values(to.size(), 2);
  const auto op = [](double was, double value) { return was * 10 + value; };
  std::vector<double> expected = f.gathered(to);
  for (double& v : expected) v = v * 10 + 2;
  expected[to.size() - 3] = expected[to.size() - 2] = expected[to.size() - 1] = 4222;
  f.a.accumulate(to, values, op);
  CHECK(f.gathered(to) == expected);
  f.forget();
  CHECK(f.gathered(to) == expected);
}

TEST_CASE("threads that accumulate the same elements lose nothing") {
  listed_vector f;
  std::vector<std::thread> all;
  const indices to = one_of_each_block();
  const std::vector<double> ones(to.size(), 1);
  std::atomic<int> thrown{0};
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      for (int n = 0; n < 25; ++n) {
        try {
          f.a.accumulate(to, ones, std::plus<>{});
        } catch (const error& e) {
          ++thrown;
        }
        // Meanwhile the blocks come and go, and are modified beside those elements.
        f.a[static_cast<std::size_t>(t * 16 + n % 16) * in_block + 5000] = n;
      }
    });
  for (std::thread& t : all) t.join();
  CHECK(thrown == 0);
  std::vector<double> expected = as_doubles(to);
  for (double& v : expected) v += 100;
  CHECK(f.gathered(to) == expected);
  f.forget();
  CHECK(f.gathered(to) == expected);
}

TEST_CASE("elements by coordinates, in a tiled array too") {
  listed_vector f;
  const auto try_layout = [&](auto layout) {
    using layout_type = decltype(layout);
    const array_options<triple> o{.tile = {16, 8}, .block = 4096, .replace = true};
    ooc_array<triple, 2, layout_type> b{f.rt, f.s, "b", create, {90, 70}, tile_if_used<layout_type>(o)};
    std::vector<std::array<std::size_t, 2>> where;
    indices flat;
    std::vector<triple> values, out(63);
    for (std::size_t i = 0; i < 63; ++i) {
      where.push_back({i * 13 % 90, i * 31 % 70});
      flat.push_back(where.back()[0] * 70 + where.back()[1]);
      values.push_back(value_of<triple>(i));
    }
    b.writeback();
    b.invalidate();
    b.scatter(where, values);
    b.gather(flat, out);
    CHECK(out == values);
    for (std::size_t i = 0; i < 63; ++i) CHECK(b.element(where[i]) == values[i]);
  };
  try_layout(layout_right{});
  try_layout(layout_tiled{});
}

TEST_CASE("a scatter takes back the promise to overwrite a block that it writes past") {
  listed_vector f;
  f.a.overwrite({{0}, {in_block}});
  f.a.scatter(indices{10}, std::vector<double>{-10});
  f.a[11] = -11;
  f.forget();
  CHECK(f.gathered({9, 10, 11, 12}) == std::vector<double>{9, -10, -11, 12});
}

TEST_CASE("elements that cannot be read are an exception, on their way by list or by block") {
  listed_vector f;
  indices wanted = one_of_each_block();
  indices dense;
  for (std::size_t i = 0; i < in_block; i += 100) dense.push_back(i);
  f.fail(storage::io_kind::read);
  CHECK_THROWS_AS(f.gathered(wanted), io_error);
  CHECK_THROWS_WITH(f.gathered(wanted), Contains("gather() of array 'a'") && Contains("memory"));
  CHECK_THROWS_AS(f.gathered(dense), io_error);
  CHECK_THROWS_AS(f.a.accumulate(wanted, as_doubles(wanted), std::plus<>{}), io_error);
  CHECK_THROWS_AS(f.a.scatter(dense, as_doubles(dense)), io_error);
  f.mend();
  CHECK(f.gathered(wanted) == as_doubles(wanted));
  CHECK(f.gathered(dense) == as_doubles(dense));
}

TEST_CASE("a scatter that failed can be repeated") {
  listed_vector f;
  const indices to = one_of_each_block();
  const std::vector<double> values(to.size(), 0.25);
  f.nodes[1]->add(
      {.call = storage::io_kind::write, .error = std::make_error_code(std::errc::io_error), .regions_before_error = 3});
  CHECK_THROWS_WITH(f.a.scatter(to, values), Contains("scatter() of array 'a'"));
  f.mend();
  const std::vector<double> found = f.gathered(to);
  std::size_t written = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    CHECK((found[i] == 0.25 || found[i] == static_cast<double>(to[i])));
    written += found[i] == 0.25;
  }
  CHECK(written >= 3);
  f.a.scatter(to, values);
  CHECK(f.gathered(to) == values);
}

TEST_CASE("where nodes fail at random, every element is what some call has given it") {
  OOC_INFO_SEED();
  auto g = random_source(20);
  listed_vector f;
  for (const auto& node : f.nodes)
    for (const auto call : {storage::io_kind::read, storage::io_kind::write})
      node->add({.call = call,
                 .probability = 0.15,
                 .error = std::make_error_code(std::errc::io_error),
                 .regions_before_error = between(g, 0, 20),
                 .error_after = between(g, 0, 1) == 1});
  std::vector<double> plain(f.a.size());
  std::iota(plain.begin(), plain.end(), 0.0);
  double serial = -1;
  int failures = 0;
  const auto until_it_succeeds = [&](auto&& call) {
    for (;;) try {
        return call();
      } catch (const io_error&) {
        REQUIRE(++failures < 5000);
      }
  };
  for (int step = 0; step < 120; ++step) {
    INFO("step " << step);
    indices some;
    const bool dense = between(g, 0, 3) == 0;
    const std::size_t first = between(g, 0, 61) * in_block;
    for (std::size_t n = between(g, 1, 300); n > 0; --n)
      some.push_back(dense ? first + between(g, 0, 2 * in_block) : between(g, 0, f.a.size() - 1));
    std::vector<double> values(some.size());
    switch (between(g, 0, 3)) {
      case 0:
        for (std::size_t n = 0; n < some.size(); ++n) plain[some[n]] = values[n] = --serial;
        until_it_succeeds([&] { f.a.scatter(some, values); });
        break;
      case 1: f.a.prefetch({{first}, {first + 3 * in_block}}); break;
      case 2: until_it_succeeds([&] { f.a.writeback(); }); break;
      case 3: {
        until_it_succeeds([&] { f.a.gather(some, values); });
        std::size_t wrong = 0;
        for (std::size_t n = 0; n < some.size(); ++n) wrong += values[n] != plain[some[n]];
        REQUIRE(wrong == 0);
      }
    }
    if (step % 4 == 3) until_it_succeeds([&] { f.a.writeback(); });
  }
  until_it_succeeds([&] { f.a.writeback(); });
  CHECK(failures > 0);
  f.mend();
  f.forget();
  CHECK(std::equal(plain.begin(), plain.end(), f.a.begin()));
}

TEST_CASE("a list of indices that cannot be is refused before anything is transferred") {
  listed_vector f;
  std::vector<double> three(3);
  const std::uint64_t before = f.requests();
  CHECK_THROWS_WITH(f.a.gather(indices{1, 2}, three),
                    Contains("gather() of array 'a': there are 2 indices, and 3 elements"));
  CHECK_THROWS_AS(f.a.gather(indices{1, 64 * in_block, 2}, three), std::out_of_range);
  CHECK_THROWS_WITH(f.a.scatter(indices{1, 2, 64 * in_block}, three),
                    Contains("scatter() of array 'a': the index {524288} at position 2 of the "
                             "indices is outside the 524288 elements of the array"));
  ooc_array<double, 2> b{f.rt, f.s, "b", create, {4, 5}, {.block = 4096}};
  using where = std::vector<std::array<std::size_t, 2>>;
  CHECK_THROWS_WITH(b.gather(where{{0, 0}, {3, 5}, {1, 1}}, three),
                    Contains("{3, 5} at position 1") && Contains("the extent 5 of dimension 1"));
  CHECK(f.requests() == before);
  f.a.close();
  CHECK_THROWS_WITH(f.a.gather(indices{0, 1, 2}, three), Contains("has been closed"));
  const ooc_array<double, 1> r{f.rt, f.s, "a", open_read_only, {.block = 64_KiB}};
  r.gather(indices{3, 4, 5}, three);
  CHECK(three == std::vector<double>{3, 4, 5});
  auto& w = const_cast<ooc_array<double, 1>&>(r);
  CHECK_THROWS_WITH(w.scatter(indices{3, 4, 5}, three), Contains("reading only"));
}

TEST_CASE("the least budget serves lists of any length, and more indices than it has room for") {
  memory_store nodes{2};
  runtime rt{memory(8 * 4096)};
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {100000}, {.block = 4096}};
  indices to;
  for (std::size_t i = 0; i < 3000; ++i) to.push_back(i * 7919 % 100000);
  const std::vector<double> values = as_doubles(to);
  a.scatter(to, values);
  a.accumulate(to, values, std::plus<>{});
  std::vector<double> out(to.size());
  a.gather(to, out);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < to.size(); ++i) wrong += out[i] != 2 * values[i];
  CHECK(wrong == 0);
  CHECK(rt.stats().resident_bytes <= 8 * 4096);
}

TEST_CASE("calls of threads for which the budget has no room at once wait for each other") {
  memory_store nodes{2};
  runtime rt{memory(9 * 4096)};
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {100000}, {.block = 4096}};
  const indices to = one_of_each_block();
  const std::vector<double> ones(to.size(), 1);
  std::vector<std::thread> all;
  std::atomic<int> thrown{0};
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&] {
      for (int n = 0; n < 20; ++n) try {
          indices some = to;
          for (std::size_t& i : some) i %= a.size();
          a.accumulate(some, ones, std::plus<>{});
        } catch (const error&) {
          ++thrown;
        }
    });
  for (std::thread& t : all) t.join();
  CHECK(thrown == 0);
  CHECK(std::accumulate(a.begin(), a.end(), 0.0) == 8.0 * 20 * static_cast<double>(to.size()));
}

TEST_CASE("an operation may gather elements of another array") {
  listed_vector f;
  ooc_array<double, 1> b{f.rt, f.s, "b", create, {64}, {.block = 4096}};
  const indices to = {3, in_block, 3};
  f.a.accumulate(to, std::vector<double>{1, 2, 3}, [&](double was, double value) {
    std::vector<double> one(1);
    b.gather(indices{5}, one);
    return was + value + one[0];
  });
  CHECK(f.gathered({3, in_block}) == std::vector<double>{7, in_block + 2.0});
}

TEST_CASE("prefetch of several boxes reads each block once") {
  listed_vector f;
  using box_type = ooc::box<1>;
  const std::vector<box_type> boxes = {
      {{0}, {10}}, {{3 * in_block}, {3 * in_block + 5}}, {{20}, {30}}, {{in_block - 1}, {in_block + 1}}};
  const runtime_stats before = f.rt.stats();
  f.a.prefetch(boxes);
  CHECK(f.a[0] + f.a[in_block] + f.a[3 * in_block] == 4.0 * in_block);
  CHECK(f.rt.stats().bytes_read - before.bytes_read == 3 * 64_KiB);
  CHECK_THROWS_WITH(f.a.prefetch(std::vector<box_type>{{{0}, {64 * in_block + 1}}}),
                    Contains("prefetch() of array 'a'"));
}
