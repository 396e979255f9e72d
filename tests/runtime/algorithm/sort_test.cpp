// Sorting: what std::sort gives, in the budget, with the traffic of the model.

#include "oocarray/algorithm/sort.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "runtime/algorithm/sort_plan.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// Too large to be sorted by radix.
struct parcel {
  std::uint32_t weight;
  std::uint32_t number;
  char content[56];
  bool operator==(const parcel&) const = default;
};

struct labelled {
  std::int16_t key;
  std::uint16_t number;
  bool operator==(const labelled&) const = default;
};

template <class T>
T random_value(std::mt19937_64& g, std::size_t i, std::uint64_t range) {
  const std::uint64_t x = g() % range;
  if constexpr (std::is_same_v<T, parcel>) {
    return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(i), {}};
  } else if constexpr (std::is_same_v<T, labelled>) {
    return {static_cast<std::int16_t>(x - range / 2), static_cast<std::uint16_t>(i)};
  } else if constexpr (std::is_floating_point_v<T>) {
    if (x % 97 == 0) return std::numeric_limits<T>::quiet_NaN();
    if (x % 89 == 0) return x % 2 ? T(0) : -T(0);
    if (x % 83 == 0) return x % 2 ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
    return (static_cast<T>(x) - static_cast<T>(range / 2)) / 7;
  } else {
    return static_cast<T>(x - range / 2);
  }
}

template <class T>
auto order_of_elements() {
  if constexpr (std::is_floating_point_v<T>)
    return [](T x, T y) { return x < y || (y != y && x == x); };
  else
    return std::less<>{};
}

template <class T>
bool same_bytes(const std::vector<T>& expected, const ooc_array<T, 1>& found) {
  return std::memcmp(expected.data(), found.data(), expected.size() * sizeof(T)) == 0;
}

/// `wish` bytes of memory beside what the arrays and the store need.
template <class T, class Sort, class Reference>
void sort_at_random(int times, store_kind kind, std::mt19937_64& g, Sort sort_it, Reference reference) {
  for (int n = rounds(times, 5 * times); n > 0; --n) {
    const test_store nodes(kind);
    const std::uint64_t most = std::uint64_t{1} << between(g, 0, 20);
    const std::size_t size = between(g, 1, 1 + most / sizeof(T));
    const std::uint64_t wish = between(g, 30_KiB, between(g, 0, 1) ? 3_MiB : 100_KiB) + 8 * sizeof(T);
    sort_options o;
    o.threads = static_cast<unsigned>(between(g, 1, 8));
    o.mark = between(g, 0, 3) == 0;
    const bool in_place = between(g, 0, 1);
    const std::uint64_t range = std::uint64_t{1} << between(g, 1, 50);
    CAPTURE(size, sizeof(T), wish, o.threads, in_place, range);
    runtime rt(memory(nodes.staging() + 16 * 8_KiB + wish));
    const array_options<T> ao{.block = 4_KiB * between(g, 1, 2)};
    ooc_array<T, 1> a{rt, nodes.handle(), "a", create, {size}, ao};
    ooc_array<T, 1> b{rt, nodes.handle(), "b", create, {size}, ao};
    std::vector<T> plain(size);
    for (std::size_t i = 0; i < size; ++i) a[i] = plain[i] = random_value<T>(g, i, range);
    const std::vector<T> before = plain;
    const sort_statistics done = in_place ? sort_it(a, a, o) : sort_it(a, b, o);
    reference(plain);
    CHECK(done.memory <= wish + 16 * 8_KiB);
    CHECK(rt.stats().resident_bytes <= rt.memory());
    REQUIRE(same_bytes(plain, in_place ? a : b));
    if (!in_place) REQUIRE(same_bytes(before, a));
    // The program goes on with bytes that were written past the blocks.
    a[0] = plain[0];
    a.writeback();
  }
}

template <class T>
void numbers_at_random(int times, store_kind kind, std::mt19937_64& g) {
  const auto less = order_of_elements<T>();
  sort_at_random<T>(
      times, kind, g, [](auto& a, auto& b, const sort_options& o) { return &a == &b ? sort(a, o) : sort(a, b, o); },
      [&](auto& v) { std::stable_sort(v.begin(), v.end(), less); });
}

}  // namespace

TEST_CASE("sorted integers are those of std::sort") {
  std::mt19937_64 g(random_seed("sort of integers"));
  numbers_at_random<std::uint64_t>(12, store_kind::in_memory, g);
  numbers_at_random<std::int32_t>(6, store_kind::in_memory, g);
  numbers_at_random<std::uint16_t>(4, store_kind::in_memory, g);
  numbers_at_random<signed char>(4, store_kind::in_memory, g);
}

TEST_CASE("sorted floating-point numbers are those of std::stable_sort, with NaN last") {
  std::mt19937_64 g(random_seed("sort of floating-point numbers"));
  numbers_at_random<double>(8, store_kind::in_memory, g);
  numbers_at_random<float>(6, store_kind::in_memory, g);
}

TEST_CASE("NaN comes last in descending order too") {
  std::mt19937_64 g(random_seed("descending sort"));
  sort_at_random<double>(
      5, store_kind::in_memory, g,
      [](auto& a, auto& b, const sort_options& o) {
        return &a == &b ? sort(a, std::greater<>{}, o) : sort(a, b, std::greater<double>{}, o);
      },
      [](auto& v) {
        std::stable_sort(v.begin(), v.end(), [](double x, double y) { return x > y || (y != y && x == x); });
      });
}

TEST_CASE("a stable sort by comparison keeps the order of equal elements") {
  std::mt19937_64 g(random_seed("stable sort"));
  const auto lighter = [](const parcel& x, const parcel& y) { return x.weight < y.weight; };
  sort_at_random<parcel>(
      10, store_kind::in_memory, g,
      [&](auto& a, auto& b, sort_options o) {
        o.stable = true;
        return &a == &b ? sort(a, lighter, o) : sort(a, b, lighter, o);
      },
      [&](auto& v) { std::stable_sort(v.begin(), v.end(), lighter); });
}

TEST_CASE("a sort by a key sorts records, by radix or by comparing keys") {
  std::mt19937_64 g(random_seed("sort by key"));
  sort_at_random<labelled>(
      6, store_kind::in_memory, g,
      [](auto& a, auto& b, const sort_options& o) {
        return &a == &b ? sort(a, &labelled::key, o) : sort(a, b, &labelled::key, o);
      },
      [](auto& v) {
        std::stable_sort(v.begin(), v.end(), [](const labelled& x, const labelled& y) { return x.key < y.key; });
      });
  const auto weight = [](const parcel& p) { return p.weight; };
  sort_at_random<parcel>(
      6, store_kind::in_memory, g,
      [&](auto& a, auto& b, sort_options o) {
        o.stable = true;
        return &a == &b ? sort(a, std::greater<>{}, weight, o) : sort(a, b, std::greater<>{}, weight, o);
      },
      [](auto& v) {
        std::stable_sort(v.begin(), v.end(), [](const parcel& x, const parcel& y) { return x.weight > y.weight; });
      });
}

TEST_CASE("an embedded store is sorted like any other") {
  std::mt19937_64 g(random_seed("sort of an embedded store"));
  numbers_at_random<std::uint64_t>(3, store_kind::local, g);
  numbers_at_random<float>(2, store_kind::local, g);
}

TEST_CASE("elements that are alike, sorted, in reverse or far from most others are sorted") {
  const int pattern = GENERATE(0, 1, 2, 3, 4);
  const std::size_t size = GENERATE(1, 2, 60'000);
  const bool by_comparison = GENERATE(false, true);
  CAPTURE(pattern, size, by_comparison);
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 64_KiB));
  ooc_array<std::int64_t, 1> a{rt, nodes.handle(), "a", create, {size}, {.block = 4_KiB}};
  std::vector<std::int64_t> plain(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    a[i] = plain[i] = pattern == 0    ? 7
                      : pattern == 1  ? at
                      : pattern == 2  ? -at
                      : pattern == 3  ? at % 3
                      : i % 1000 == 5 ? std::int64_t{1} << 60
                                      : at * 7919 % 50'021;
  }
  const sort_options o{.threads = 3};
  if (by_comparison)
    sort(
        a, [](std::int64_t x, std::int64_t y) { return x < y; }, o);
  else
    sort(a, o);
  std::sort(plain.begin(), plain.end());
  CHECK(same_bytes(plain, a));
}

namespace {

/// Numbers of which few differ, or few are far from all others, or each needs another number of bits.
template <class K>
K skewed_number(std::mt19937_64& g, std::uint64_t pattern) {
  using limits = std::numeric_limits<K>;
  const std::uint64_t x = g();
  const auto bits = [](std::uint64_t b) {
    K k;
    std::memcpy(&k, &b, sizeof k);
    return k;
  };
  switch (pattern) {
    case 0: return bits(x);
    case 1: return K(7);
    case 2: return K(x % 3);
    case 3: return x % 5000 == 0 ? limits::max() : K(x % 100);
    case 4: return x % 5000 == 0 ? limits::lowest() : K(x % 100);
    case 5: return bits(std::uint64_t{1} << x % 64);
    case 6: return bits(x >> x % 64);
    default:
      if (!limits::has_quiet_NaN) return K(0);
      return x % 4 == 0 ? limits::quiet_NaN() : x % 4 == 1 ? K(0) : x % 4 == 2 ? static_cast<K>(-K(0)) : bits(x);
  }
}

template <class K>
struct numbered {
  K key;
  std::uint32_t number;
  bool operator==(const numbered&) const = default;
};

/// Stable: the elements' numbers tell.
template <class K, class Compare>
void sort_and_merge_skewed(std::mt19937_64& g, Compare compare) {
  using T = numbered<K>;
  const auto order = detail::order_of<T>(compare, [](const T& x) { return x.key; });
  const detail::ordered_program<T, std::remove_const_t<decltype(order)>> program(order, true);
  const std::size_t cached = detail::radix_sorter<T, std::remove_const_t<decltype(order)>>::cached;
  const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const T& a, const T& b) { return a.number == b.number; });
  };
  for (std::uint64_t pattern = 0; pattern < 8; ++pattern) {
    const std::size_t count = between(g, 0, 1) ? between(g, 1, 3000) : between(g, cached / 2, 4 * cached);
    CAPTURE(sizeof(K), std::is_floating_point_v<K>, std::is_signed_v<K>, pattern, count);
    std::vector<T> run, scratch(count);
    for (std::uint32_t i = 0; i < count; ++i) run.push_back({skewed_number<K>(g, pattern), i});
    std::vector<T> expected = run;
    std::stable_sort(expected.begin(), expected.end(), std::cref(order));
    const bool moved =
        program.sort_run(reinterpret_cast<std::byte*>(run.data()), count, reinterpret_cast<std::byte*>(scratch.data()));
    REQUIRE(same(expected, moved ? scratch : run));

    std::vector<std::vector<T>> windows(between(g, 5, 70));
    std::vector<T> all;
    std::vector<detail::sorted_window> w;
    const std::size_t most = between(g, 1, cached / windows.size());
    for (auto& one : windows) {
      for (std::size_t n = between(g, 1, most); n > 0; --n) one.push_back({skewed_number<K>(g, pattern), 0});
      std::stable_sort(one.begin(), one.end(), std::cref(order));
      for (T& x : one) {
        x.number = static_cast<std::uint32_t>(all.size());
        all.push_back(x);
      }
      w.push_back({reinterpret_cast<const std::byte*>(one.data()), one.size()});
    }
    std::vector<T> merged(all.size() + 1, T{K(), 4'000'000'000});
    program.merge(w, reinterpret_cast<std::byte*>(merged.data()));
    std::stable_sort(all.begin(), all.end(), std::cref(order));
    REQUIRE(merged.back().number == 4'000'000'000);
    merged.pop_back();
    REQUIRE(same(all, merged));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("numbers that are few or skewed are sorted and merged by radix, equal ones in their order",
                   "[own-store]", std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::int32_t, std::uint64_t,
                   std::int64_t, float, double) {
  std::mt19937_64 g(random_seed("skewed numbers"));
  for (int n = rounds(2, 20); n > 0; --n) {
    sort_and_merge_skewed<TestType>(g, std::less<>{});
    sort_and_merge_skewed<TestType>(g, std::greater<>{});
  }
}

TEST_CASE("elements larger than a page are sorted in little memory") {
  struct page {
    std::uint64_t key;
    char rest[4992];
  };
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 16 * 8_KiB + 60_KiB));
  constexpr std::size_t n = 120;
  ooc_array<page, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 8_KiB}};
  for (std::size_t i = 0; i < n; ++i) a[i] = {(i * 7919) % n, {}};
  const sort_statistics done = sort(a, &page::key, {.memory = 60_KiB});
  CHECK(done.runs > 2);
  for (std::size_t i = 0; i < n; ++i) REQUIRE(std::as_const(a)[i].key == i);
}

TEST_CASE("a sort reads and writes as often as the model says", "[megabytes]") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 16 * 4_KiB + 700_KiB, 1));  // without read-ahead, bytes are exact
  constexpr std::size_t n = 512 << 10;                            // 4 MiB
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 4_KiB}};
  ooc_array<std::uint64_t, 1> b{rt, nodes.handle(), "b", create, {n}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < n; ++i) a[i] = value_of<std::uint64_t>(i);
  a.writeback();
  const io_stats before = nodes.handle().stats();
  const runtime_stats counted = rt.stats();
  double part = 0;
  bool backwards = false;
  const sort_statistics done = sort(a, b, {.threads = 2, .progress = [&](const pass_progress& p) {
                                             backwards |= p.part() < part;
                                             part = p.part();
                                             return true;
                                           }});
  const io_stats moved = nodes.handle().stats() - before;
  CHECK(done.passes == 2);
  CHECK(done.bytes_read == 2 * n * sizeof(std::uint64_t));
  CHECK(done.bytes_written == done.bytes_read);
  CHECK(done.temporary_bytes == n * sizeof(std::uint64_t));
  CHECK(done.memory > 500_KiB);
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  CHECK(rt.stats().bytes_read - counted.bytes_read == done.bytes_read);
  CHECK(rt.stats().bytes_written - counted.bytes_written == done.bytes_written);
  CHECK_FALSE(backwards);
  CHECK(part == 1);
  CHECK(is_sorted(b));

  // An array that fits in memory is read and written once.
  ooc_array<std::uint64_t, 1> c{rt, nodes.handle(), "c", create, {20'000}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = value_of<std::uint64_t>(i);
  const sort_statistics once = sort(c);
  CHECK(once.passes == 1);
  CHECK(once.temporary_bytes == 0);
  CHECK(is_sorted(c));
}

TEST_CASE("a plan takes no more memory than it is given, and its passes come to an end", "[own-store]") {
  std::mt19937_64 g(random_seed("plan of a sort"));
  for (int n = 0; n < 20'000; ++n) {
    detail::sort_facts f;
    f.element_size = between(g, 0, 3) ? std::size_t{1} << between(g, 0, 6) : between(g, 1, 20'000);
    f.elements = between(g, 1, std::uint64_t{1} << between(g, 1, 40));
    f.scratch = between(g, 0, 1);
    f.allocates = !f.scratch && between(g, 0, 1);
    f.threads = static_cast<unsigned>(between(g, 1, 16));
    f.ranks = between(g, 0, 1) ? 1 : between(g, 2, 300);
    const std::uint64_t least = detail::least_sort_memory(f);
    const std::uint64_t memory = least + between(g, 0, std::uint64_t{1} << between(g, 0, 32));
    CAPTURE(f.element_size, f.elements, f.scratch, f.allocates, f.threads, f.ranks, memory, least);
    const detail::sort_plan p = detail::plan_sort(f, memory);
    REQUIRE(p.taken_bytes <= memory);
    REQUIRE(p.lent_bytes <= p.taken_bytes);
    REQUIRE(p.run >= 1);
    REQUIRE(p.output >= 1);
    REQUIRE(p.runs == (f.elements + p.run - 1) / p.run);
    REQUIRE((!p.in_memory || f.ranks == 1));
    if (p.in_memory) continue;
    REQUIRE(p.piece >= 1);
    REQUIRE(p.fan_in >= 2);
    REQUIRE((p.granule == 1 ||
             (p.granule * f.element_size % 4096 == 0 && p.run % p.granule == 0 && p.output >= 2 * p.granule)));
    std::uint64_t runs = p.runs;  // of each rank
    for (unsigned m = 1; m < p.merges; ++m) runs = (runs + p.fan_in - 1) / p.fan_in;
    REQUIRE(f.ranks * runs <= p.fan_in);
  }
}

TEST_CASE("half a terabyte is merged at once with 1 GiB of memory", "[own-store]") {
  const detail::sort_plan p =
      detail::plan_sort({.elements = std::uint64_t{1} << 39, .element_size = 8, .scratch = true, .threads = 2}, 1_GiB);
  CHECK(p.merges == 2);
  const detail::sort_plan q =
      detail::plan_sort({.elements = std::uint64_t{1} << 36, .element_size = 8, .scratch = true, .threads = 2}, 1_GiB);
  CHECK(q.merges == 1);
}

TEST_CASE("an array of several dimensions is sorted only where its flat order is meant") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 200_KiB));
  ooc_array<int, 2> a{rt, nodes.handle(), "a", create, {64, 33}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<int>((i * 7919) % 10007);
  CHECK_THROWS_WITH(sort(a), Catch::Contains("has 2 dimensions") && Catch::Contains("options.flat"));
  CHECK_THROWS_WITH(is_sorted(a), Catch::Contains("options.flat"));
  sort(a, {.flat = true});
  CHECK(std::is_sorted(std::as_const(a).begin(), std::as_const(a).end()));
  CHECK(is_sorted(a, {}, {}, {.flat = true}));
  ooc_array<int, 2, layout_tiled> t{rt,     nodes.handle(), "t",
                                    create, {64, 64},       {.order = file_order::tiled, .tile = {16, 16}}};
  CHECK_THROWS_WITH(sort(t, {.flat = true}), Catch::Contains("'t' has tiles"));
  ooc_array<int, 1, layout_tiled> line{rt,     nodes.handle(), "line",
                                       create, {5000},         {.order = file_order::tiled, .tile = {1024}}};
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<int>((i * 7919) % 10007);
  sort(line);
  CHECK(std::is_sorted(std::as_const(line).begin(), std::as_const(line).end()));
}

TEST_CASE("arrays that cannot be sorted are refused by name, with the remedy") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 200_KiB));
  const array_options<int> o{.block = 4_KiB};
  ooc_array<int, 1> a{rt, nodes.handle(), "a", create, {5000}, o};
  ooc_array<int, 1> b{rt, nodes.handle(), "b", create, {5001}, o};
  CHECK_THROWS_WITH(sort(a, b), Catch::Contains("5000 elements, the other 5001"));
  {
    const auto held = a.pin({{0}, {10}});
    CHECK_THROWS_WITH(sort(a), Catch::Contains("'a' has pinned regions"));
  }
  CHECK_THROWS_WITH(sort(a, {.memory = 10_KiB}),
                    Catch::Contains("needs at least") && Catch::Contains("options.memory allows 10240"));
  ooc_array<int, 1> s{rt, nodes.handle(), "s", create, {5000}, {.block = 4_KiB, .shared = true}};
  CHECK_THROWS_WITH(sort(s), Catch::Contains("'s' is open together with other processes"));
  b.close();
  ooc_array<int, 1> r{rt, nodes.handle(), "b", open_read_only};
  CHECK_THROWS_WITH(sort(r), Catch::Contains("reading only"));
}

TEST_CASE("a budget that is too small says how much would do, and that does") {
  const test_store nodes(store_kind::in_memory);
  std::uint64_t bytes = nodes.staging() + 9 * 4_KiB;
  for (const bool again : {false, true}) {
    runtime rt(memory(bytes));
    ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {100'000}, {.block = 4_KiB, .replace = true}};
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = value_of<std::uint64_t>(i);
    if (again) {
      sort(a);
      CHECK(is_sorted(a));
      continue;
    }
    try {
      sort(a);
      FAIL("sorted with nothing to spare");
    } catch (const usage_error& e) {
      REQUIRE(e.code() == make_error_code(errc::budget_too_small));
      const std::string what = e.what();
      const std::size_t at = what.find("give the runtime ");
      REQUIRE(at != std::string::npos);
      bytes += std::stoull(what.substr(at + 17));
    }
  }
}

TEST_CASE("lower_bound finds many keys at once where std::lower_bound does") {
  std::mt19937_64 g(random_seed("lower_bound"));
  for (int n = rounds(8, 40); n > 0; --n) {
    const test_store nodes(store_kind::in_memory);
    runtime rt(room_for(nodes, between(g, 80_KiB, 3_MiB)));
    const std::size_t size = between(g, 1, 200'000);
    const std::uint64_t range = std::uint64_t{1} << between(g, 1, 40);
    ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {size}, {.block = 4_KiB}};
    std::vector<double> plain(size), keys(between(g, 0, 2000));
    for (double& x : plain) x = static_cast<double>(g() % range);
    for (double& k : keys) k = static_cast<double>(g() % range) - between(g, 0, 1) * 0.5;
    const bool descending = between(g, 0, 1);
    CAPTURE(size, range, keys.size(), descending);
    if (descending)
      std::sort(plain.begin(), plain.end(), std::greater<>{});
    else
      std::sort(plain.begin(), plain.end());
    std::copy(plain.begin(), plain.end(), a.begin());
    const std::vector<std::size_t> found = descending ? lower_bound(a, keys, std::greater<>{}) : lower_bound(a, keys);
    REQUIRE(found.size() == keys.size());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const auto at = descending ? std::lower_bound(plain.begin(), plain.end(), keys[k], std::greater<>{})
                                 : std::lower_bound(plain.begin(), plain.end(), keys[k]);
      REQUIRE(found[k] == static_cast<std::size_t>(at - plain.begin()));
    }
  }
}

TEST_CASE("lower_bound tells how far it has come, from the first halving on, and can be cancelled") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 1_MiB));
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {200'000}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 3 * i;
  std::vector<std::uint64_t> keys(500);
  for (std::size_t k = 0; k < keys.size(); ++k) keys[k] = 1201 * k;
  std::vector<pass_progress> told;
  const auto found = lower_bound(a, keys, {}, {}, {.progress = [&](const pass_progress& p) {
                                   told.push_back(p);
                                   return true;
                                 }});
  CHECK(found[1] == 401);
  REQUIRE(told.size() > 10);
  CHECK(told.front().part() < 0.1);
  CHECK(told.back().part() == 1);
  CHECK(std::is_sorted(told.begin(), told.end(), [](const auto& x, const auto& y) { return x.done < y.done; }));
  for (const double until : {0.0, 0.5}) {
    CAPTURE(until);
    try {
      lower_bound(a, keys, {}, {}, {.progress = [until](const pass_progress& p) { return p.part() < until; }});
      FAIL("it was cancelled");
    } catch (const error& e) {
      CHECK(e.code() == std::errc::operation_canceled);
      CHECK_THAT(e.what(), Catch::Contains("lower_bound() of 'a'"));
    }
  }
}

TEST_CASE("is_sorted sees one element that is not in order, wherever it is") {
  std::mt19937_64 g(random_seed("is_sorted"));
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 200_KiB));
  constexpr std::size_t n = 100'000;
  ooc_array<std::uint32_t, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 4_KiB}};
  for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<std::uint32_t>(i);
  const sort_options o{.threads = 3};
  CHECK(is_sorted(a, {}, {}, o));
  CHECK_FALSE(is_sorted(a, std::greater<>{}, {}, o));
  for (int k = 0; k < 50; ++k) {
    const std::size_t at = between(g, 1, n - 1);
    CAPTURE(at);
    a[at] = static_cast<std::uint32_t>(at - 2);
    REQUIRE_FALSE(is_sorted(a, {}, {}, o));
    a[at] = static_cast<std::uint32_t>(at);
  }
}

namespace {

/// Of a type that std::numeric_limits and std::is_floating_point need not know.
template <class T>
void sort_with_nan(std::uint64_t seed) {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 1_MiB));
  std::mt19937_64 g(seed);
  ooc_array<T, 1> a{rt, nodes.handle(), "a", create, {10'000}, {.block = 4_KiB}};
  std::vector<long double> numbers;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<T>(random_value<long double>(g, i, 1000));
    a[i] = x;
    if (x == x) numbers.push_back(static_cast<long double>(x));
  }
  const auto [least, greatest] = std::ranges::minmax(numbers);
  CHECK(static_cast<long double>(min_element(a).value.value) == least);
  CHECK(static_cast<long double>(max_element(a).value.value) == greatest);
  const auto numbers_first = [&](const auto& order) {
    std::sort(numbers.begin(), numbers.end(), order);
    const auto is_nan = [](T x) { return x != x; };
    const bool last = std::all_of(a.data() + numbers.size(), a.data() + a.size(), is_nan);
    return last && std::equal(numbers.begin(), numbers.end(), a.data());
  };
  sort(a);
  CHECK(numbers_first(std::less<>{}));
  CHECK(is_sorted(a));
  sort(a, std::greater<>{});
  CHECK(numbers_first(std::greater<>{}));
  CHECK(is_sorted(a, std::greater<T>{}));
}

}  // namespace

TEST_CASE("long doubles are sorted with NaN last, ascending and descending") {
  sort_with_nan<long double>(random_seed("sort of long doubles"));
}

#ifdef OOCARRAY_FLOAT16
TEST_CASE("numbers of half precision are sorted with NaN last, ascending and descending") {
  sort_with_nan<_Float16>(random_seed("sort of numbers of half precision"));
}
#endif

TEST_CASE("the flat order of an array in tiles is looked at and searched where it lies") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 1_MiB));
  std::mt19937_64 g(random_seed("search in tiles"));
  const auto check = [&]<std::size_t N>(const std::array<std::size_t, N>& extents,
                                        const std::vector<std::size_t>& tile) {
    ooc_array<int, N, layout_tiled> t{
        rt, nodes.handle(), "t", create, extents, {.order = file_order::tiled, .tile = tile, .replace = true}};
    ooc_array<int, N> a{rt, nodes.handle(), "a", create, extents, {.block = 4_KiB, .replace = true}};
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<int>(i / 3);
    copy(a, t);
    std::vector<int> keys;
    for (int k = 0; k < 40; ++k) keys.push_back(static_cast<int>(between(g, 0, a.size() / 3 + 10)));
    const sort_options flat{.flat = true};
    CHECK(is_sorted(t, {}, {}, flat));
    CHECK(lower_bound(t, keys, {}, {}, flat) == lower_bound(a, keys, {}, {}, flat));
    a.data()[between(g, 1, a.size() - 1)] = -1;
    copy(a, t);
    CHECK_FALSE(is_sorted(t, {}, {}, flat));
  };
  check(std::array<std::size_t, 2>{300, 70}, {16, 16});
  check(std::array<std::size_t, 3>{40, 33, 50}, {16, 8, 16});
}

TEST_CASE("a sort needs no name that another array has, or that would be too long") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 16 * 4_KiB + 200_KiB));
  const auto name = GENERATE(std::string("keys"), std::string(255, 'k'));
  constexpr std::size_t n = 100'000;  // 800 KB
  const array_options<std::uint64_t> o{.block = 4_KiB, .replace = true};
  ooc_array<std::uint64_t, 1> keys{rt, nodes.handle(), name, create, {n}, o};
  ooc_array<std::uint64_t, 1> other{rt, nodes.handle(), "keys.sort", create, {n}, o};
  for (std::size_t i = 0; i < n; ++i) keys[i] = other[i] = value_of<std::uint64_t>(i);
  CHECK(sort(keys).temporary_bytes == n * sizeof(std::uint64_t));
  CHECK(is_sorted(keys));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += std::as_const(other)[i] != value_of<std::uint64_t>(i);
  CHECK(wrong == 0);
}
