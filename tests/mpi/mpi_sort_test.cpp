// Sorting on several ranks: what std::stable_sort gives, with the traffic of the model; what is left where one rank
// fails; is_sorted() and lower_bound().
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <numeric>

#include "mpi/ranks.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// Too large to be sorted by radix.
struct parcel {
  std::uint32_t weight;
  std::uint32_t number;
  char content[56];
};

template <class T>
T element_of(std::uint64_t x, std::size_t i) {
  if constexpr (std::is_same_v<T, parcel>)
    return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(i), {}};
  else
    return static_cast<T>(x);
}

/// Each rank writes its own elements; nobody syncs.
template <class T, std::size_t N>
void fill_own(ooc_array<T, N>& a, const std::vector<T>& plain) {
  const std::size_t row = a.size() / a.extent(0);
  const auto [first, last] = a.local_rows();
  std::copy(plain.begin() + static_cast<std::ptrdiff_t>(first * row),
            plain.begin() + static_cast<std::ptrdiff_t>(last * row), a.data() + first * row);
}

template <class T, std::size_t N>
bool holds(const ooc_array<T, N>& a, const std::vector<T>& plain) {
  return std::memcmp(a.data(), plain.data(), plain.size() * sizeof(T)) == 0;
}

std::uint64_t sum_of_ranks(process_group& group, std::uint64_t n) {
  group.all_reduce("sum", {&n, 1}, reduction::sum);
  return n;
}

template <class T, std::size_t N, class Sort, class Less>
void sort_at_random(int times, std::uint64_t salt, Sort sort_it, Less less) {
  const auto group = all_ranks();
  const auto ranks = static_cast<std::size_t>(group->size());
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int n = 0; n < times; ++n) {
    const std::size_t most = std::size_t{1} << between(g, 0, 17);
    std::array<std::size_t, N> extents;
    extents.fill(N == 1 ? between(g, 1, 1 + most / sizeof(T)) : between(g, 1, 90));
    const std::size_t size = N == 1 ? extents[0] : extents[0] * extents[N - 1];
    sort_options o{.stable = true, .flat = N > 1};
    o.threads = static_cast<unsigned>(between(g, 1, 3));
    o.mark = between(g, 0, 1);
    // The least that does, and more.
    const std::uint64_t wish =
        (2 * std::max<std::size_t>(2, ranks) + 3) * 4_KiB + between(g, 0, 1) * between(g, 0, 1_MiB);
    const bool in_place = between(g, 0, 1);
    const std::uint64_t range = std::uint64_t{1} << between(g, 1, 40);
    array_options<T> ao{.block = 4_KiB * between(g, 1, 2), .replace = true, .group = group};
    ao.owner_computes = between(g, 0, 1);
    CAPTURE(size, sizeof(T), wish, o.threads, o.mark, in_place, range, ao.owner_computes);
    const bool poor = group->rank() == group->size() / 2;  // one rank has less memory than the others
    runtime rt(memory(st.core()->staging_bytes() + 48 * 4_KiB + wish + 64_KiB));
    o.memory = poor ? wish : wish + 32_KiB;
    ooc_array<T, N> a{rt, st, "sort/a", create, extents, ao};
    ooc_array<T, N> b{rt, st, "sort/b", create, extents, ao};
    std::vector<T> plain(size);
    for (std::size_t i = 0; i < size; ++i) plain[i] = element_of<T>(g() % range, i);
    const std::vector<T> before = plain;
    fill_own(a, plain);
    const sort_statistics done = in_place ? sort_it(a, a, o) : sort_it(a, b, o);
    std::stable_sort(plain.begin(), plain.end(), less);
    CHECK(done.memory <= wish);
    REQUIRE(holds(std::as_const(in_place ? a : b), plain));
    a.sync();
    if (!in_place) REQUIRE(holds(std::as_const(a), before));
    CHECK(sum_of_ranks(*group, done.bytes_read) == done.passes * size * sizeof(T));
    CHECK(sum_of_ranks(*group, done.bytes_written) == done.passes * size * sizeof(T));
    group->barrier("all have compared");
    a.close();
    b.close();
  }
}

template <class T, std::size_t N>
void numbers_at_random(int times, std::uint64_t salt) {
  sort_at_random<T, N>(
      times, salt, [](auto& a, auto& b, const sort_options& o) { return &a == &b ? sort(a, o) : sort(a, b, o); },
      std::less<>{});
}

constexpr std::size_t many = 40'000;  // 320 KB

struct many_numbers {
  many_numbers(runtime& rt, const store& s, const std::shared_ptr<process_group>& group)
      : a(rt, s, "sort/many", create, {many}, {.block = 4_KiB, .replace = true, .group = group}) {
    for (std::size_t i = 0; i < many; ++i) plain.push_back(value_of<std::uint64_t>(i));
    fill_own(a, plain);
    a.sync();
    sorted = plain;
    std::sort(sorted.begin(), sorted.end());
  }
  ooc_array<std::uint64_t, 1> a;
  std::vector<std::uint64_t> plain, sorted;
};

std::vector<storage::file_id> objects(const store& s) {
  std::promise<std::vector<storage::file_id>> ids;
  s.core()->nodes()[0]->list([&](const failure&, std::vector<storage::file_id> all) { ids.set_value(std::move(all)); });
  auto all = ids.get_future().get();
  std::sort(all.begin(), all.end());
  return all;
}

runtime_options room_for(const store& s, std::uint64_t bytes) {
  return memory(s.core()->staging_bytes() + 32 * 4_KiB + bytes, 1);
}

}  // namespace

TEST_CASE("ranks sort numbers as std::sort does, with any budget") {
  numbers_at_random<std::uint64_t, 1>(6, 71);
  numbers_at_random<std::uint16_t, 1>(3, 72);
}

TEST_CASE("ranks sort the elements of several dimensions in their flat order") {
  numbers_at_random<std::int32_t, 2>(3, 73);
}

TEST_CASE("ranks keep the order of equal elements in a stable sort by comparison") {
  const auto lighter = [](const parcel& x, const parcel& y) { return x.weight < y.weight; };
  sort_at_random<parcel, 1>(
      4, 74,
      [&](auto& a, auto& b, const sort_options& o) { return &a == &b ? sort(a, lighter, o) : sort(a, b, lighter, o); },
      lighter);
}

TEST_CASE("elements that are alike, sorted or in reverse are shared out to the ranks") {
  const int pattern = GENERATE(0, 1, 2, 3);
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 200_KiB));
  const array_options<std::int64_t> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<std::int64_t, 1> a{rt, st, "sort/pattern", create, {9001}, o};
  std::vector<std::int64_t> plain;
  for (std::int64_t i = 0; i < 9001; ++i)
    plain.push_back(pattern == 0 ? 7 : pattern == 1 ? i : pattern == 2 ? -i : i % 3);
  fill_own(a, plain);
  sort(a, {.memory = 70_KiB});
  std::sort(plain.begin(), plain.end());
  CHECK(holds(std::as_const(a), plain));
  group->barrier("all have compared");
}

TEST_CASE("is_sorted() is the same on all ranks, each of which reads its part") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 200_KiB));
  many_numbers m(rt, st, group);
  CHECK_FALSE(is_sorted(m.a));
  sort(m.a);
  const io_stats before = st.stats();
  CHECK(is_sorted(m.a));
  CHECK((st.stats() - before).bytes_read <= many / static_cast<std::size_t>(group->size()) * 10 + 64_KiB);
  // Nothing but the first element of a part comes after its neighbour, which is another rank's; nobody syncs.
  const auto [first, last] = m.a.local_rows();
  if (group->rank() + 1 == group->size() && first < last) m.a[first] = 0;
  CHECK(is_sorted(m.a) == (group->size() == 1));
  group->barrier("all have looked");
}

TEST_CASE("each rank finds the places of its own keys") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 1_MiB));
  many_numbers m(rt, st, group);
  sort(m.a);
  std::mt19937_64 g(common_seed() + static_cast<std::uint64_t>(group->rank()));
  std::vector<std::uint64_t> keys(between(g, 1, 50));
  for (std::uint64_t& k : keys) k = m.sorted[between(g, 0, many - 1)] + between(g, 0, 1);
  const std::vector<std::size_t> places = lower_bound(m.a, keys);
  for (std::size_t k = 0; k < keys.size(); ++k)
    CHECK(places[k] ==
          static_cast<std::size_t>(std::lower_bound(m.sorted.begin(), m.sorted.end(), keys[k]) - m.sorted.begin()));
  group->barrier("all have looked");
}

TEST_CASE("a rank that fails before the merge ends the sort on all, and the array is as it was") {
  const int what = GENERATE(0, 1, 2);  // reads, writes, the callback
  const auto group = all_ranks();
  const faulty_store nodes;
  runtime rt(room_for(nodes.handle, 150_KiB));
  many_numbers m(rt, nodes.handle, group);
  group->barrier("all is in the store");
  const auto before = objects(nodes.handle);
  const bool mine = group->rank() == group->size() / 2;
  if (mine && what < 2)
    nodes.fail({.call = what == 0 ? storage::io_kind::read : storage::io_kind::write,
                .error = std::make_error_code(std::errc::io_error)});
  const auto cancel = [&](const pass_progress&) { return what < 2 || !mine; };
  CHECK_THROWS_AS(sort(m.a, {.progress = cancel}), error);
  nodes.clear();
  group->barrier("the temporary file has gone");
  const auto after = objects(nodes.handle);  // what was removed earlier may have gone meanwhile
  CHECK(std::includes(before.begin(), before.end(), after.begin(), after.end()));
  CHECK(holds(std::as_const(m.a), m.plain));
  group->barrier("all have compared");
  m.a.close();
  ooc_array<std::uint64_t, 1> again{rt, nodes.handle, "sort/many", open, {.group = group}};  // not marked
  sort(again);
  CHECK(holds(std::as_const(again), m.sorted));
  group->barrier("all have compared again");
}

TEST_CASE("a rank that fails in the merge leaves one mark on the array") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 150_KiB));
  many_numbers m(rt, st, group);
  const bool mine = group->rank() == 0;
  CHECK_THROWS_WITH(sort(m.a, {.progress = [&](const pass_progress& p) { return !mine || p.part() < 0.8; }}),
                    Catch::Contains("cancelled"));
  m.a.close();
  CHECK_THROWS_WITH((ooc_array<std::uint64_t, 1>{rt, st, "sort/many", open, {.group = group}}),
                    Catch::Contains("in the middle of an algorithm") && Catch::Contains("sort of"));
}

TEST_CASE("a rank that has too little memory for a sort says so on all") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 200_KiB));
  many_numbers m(rt, st, group);
  const bool mine = group->rank() + 1 == group->size();
  CHECK_THROWS_WITH(sort(m.a, {.memory = mine ? 10_KiB : 0}), Catch::Contains("options.memory allows 10240"));
  CHECK(holds(std::as_const(m.a), m.plain));
  group->barrier("all have compared");
}

TEST_CASE("a comparison that throws on one rank ends the sort on all") {
  const auto group = all_ranks();
  const store st = common_store();
  runtime rt(room_for(st, 200_KiB));
  many_numbers m(rt, st, group);
  const bool mine = group->rank() == group->size() / 2;
  const auto throwing = [mine](std::uint64_t x, std::uint64_t y) {
    if (mine) throw std::runtime_error("too heavy");
    return x < y;
  };
  CHECK_THROWS_WITH(sort(m.a, throwing), Catch::Contains("too heavy"));
  sort(m.a);
  CHECK(holds(std::as_const(m.a), m.sorted));
  group->barrier("all have compared");
}
