// Tests of what is left where a sort is interrupted: by an error, the progress callback, a comparison that throws, the
// process's end.
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <future>

#include "oocarray/algorithm/sort.hpp"
#include "support/algorithm/faulty_store.hpp"
#include "support/dying_case.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t in_the_middle = 100'000;  // 800 KB in 200 KiB

template <class Array>
void fill(Array& a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = value_of<std::uint64_t>(i);
  a.writeback();
}
template <class Array>
bool is_as_filled(const Array& a) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != value_of<std::uint64_t>(i)) return false;
  return true;
}

}  // namespace

TEST_CASE("an error before the merge leaves the array as it was, and no temporary file", "[own-store]") {
  const faulty_store nodes;
  const bool reads = GENERATE(true, false);
  runtime rt(memory(nodes.core->staging_bytes() + 16 * 4_KiB + 200_KiB, 1));  // no read-ahead: calls are counted
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {in_the_middle}, {.block = 4_KiB}};
  fill(a);
  const auto kind = reads ? storage::io_kind::read : storage::io_kind::write;
  nodes.node->add(
      {.call = kind, .nth = nodes.node->calls(kind) + 3, .error = std::make_error_code(std::errc::io_error)});
  CHECK_THROWS_AS(sort(a, {.threads = 2}), io_error);
  nodes.node->clear();
  CHECK(nodes.objects() == 1);
  CHECK(is_as_filled(std::as_const(a)));
  a.close();
  ooc_array<std::uint64_t, 1> again{rt, nodes.handle(), "a", open, {.block = 4_KiB}};
  sort(again, {.threads = 2});
  CHECK(is_sorted(again));
}

TEST_CASE("a disk without room for the temporary file is an error before anything is touched", "[own-store]") {
  const faulty_store nodes;
  runtime rt(memory(nodes.core->staging_bytes() + 16 * 4_KiB + 200_KiB, 1));  // no read-ahead: calls are counted
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {in_the_middle}, {.block = 4_KiB}};
  fill(a);
  const std::uint64_t reads = nodes.node->calls(storage::io_kind::read);
  nodes.node->add({.call = storage::io_kind::create, .error = std::make_error_code(std::errc::no_space_on_device)});
  CHECK_THROWS_WITH(sort(a), Catch::Contains("No space left") && Catch::Contains("a.sort"));
  CHECK(nodes.node->calls(storage::io_kind::read) == reads);
  CHECK(nodes.node->hits(storage::io_kind::create) == 1);
  CHECK(is_as_filled(std::as_const(a)));
}

TEST_CASE("an error in the merge leaves the mark on the array that is written", "[own-store]") {
  const faulty_store nodes;
  const bool in_place = GENERATE(true, false);
  runtime rt(memory(nodes.core->staging_bytes() + 16 * 4_KiB + 200_KiB, 1));  // no read-ahead: calls are counted
  const array_options<std::uint64_t> o{.block = 4_KiB};
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {in_the_middle}, o};
  ooc_array<std::uint64_t, 1> b{rt, nodes.handle(), "b", create, {in_the_middle}, o};
  fill(a);
  const auto spoil = [&](const pass_progress& p) {
    if (p.part() > 0.7)
      nodes.node->add({.call = storage::io_kind::write, .error = std::make_error_code(std::errc::io_error)});
    return true;
  };
  CHECK_THROWS_AS(in_place ? sort(a, {.progress = spoil}) : sort(a, b, {.progress = spoil}), io_error);
  nodes.node->clear();
  CHECK(nodes.objects() == 2);
  if (!in_place) CHECK(is_as_filled(std::as_const(a)));
  (in_place ? a : b).close();
  CHECK_THROWS_WITH((ooc_array<std::uint64_t, 1>{rt, nodes.handle(), in_place ? "a" : "b", open}),
                    Catch::Contains("in the middle of an algorithm") && Catch::Contains("sort of 'a'"));
}

TEST_CASE("the progress callback cancels a sort") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 200_KiB));
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {in_the_middle}, {.block = 4_KiB}};
  fill(a);
  const auto until = [](double part) { return [part](const pass_progress& p) { return p.part() < part; }; };
  CHECK_THROWS_WITH(sort(a, {.progress = until(0.2)}), Catch::Contains("cancelled"));
  CHECK(is_as_filled(std::as_const(a)));
  CHECK_THROWS_WITH(sort(a, {.progress = until(0.8)}), Catch::Contains("cancelled"));
  a.close();
  CHECK_THROWS_WITH((ooc_array<std::uint64_t, 1>{rt, nodes.handle(), "a", open}), Catch::Contains("in the middle"));
}

TEST_CASE("a comparison that throws ends the sort with its exception") {
  struct too_heavy {};
  const std::uint64_t calls = GENERATE(100, 1'000'000, 2'300'000);
  CAPTURE(calls);
  const test_store nodes(store_kind::in_memory);
  runtime rt(room_for(nodes, 200_KiB));
  ooc_array<std::uint64_t, 1> a{rt, nodes.handle(), "a", create, {in_the_middle}, {.block = 4_KiB}};
  fill(a);
  std::atomic<std::uint64_t> count{0};
  const auto throwing = [&](std::uint64_t x, std::uint64_t y) {
    if (++count == calls) throw too_heavy();
    return x < y;
  };
  try {
    sort(a, throwing, {.threads = 3});
    CHECK(count < calls);  // it needed fewer
  } catch (const too_heavy&) {
  }
  sort(a);
  CHECK(is_sorted(a));
}

// The next test runs this in a process of its own.
TEST_CASE("a sort that dies", "[.sort-dies]") {
  const char* const part = std::getenv("OOC_TEST_PART");
  REQUIRE(part != nullptr);
  const store s = store::open(url_of_dying_case(), {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 16 * 4_KiB + 200_KiB));
  ooc_array<std::uint64_t, 1> a{rt, s, "a", create, {in_the_middle}, {.block = 4_KiB}};
  fill(a);
  const double when = std::atof(part);
  sort(a, {.progress = [when](const pass_progress& p) {
         if (p.part() >= when) ::raise(SIGKILL);
         return true;
       }});
}

TEST_CASE("a process that dies in a sort leaves the array as it was, or marked", "[own-store]") {
  const bool merging = GENERATE(false, true);
  CAPTURE(merging);
  const temporary_folder folder;
  const std::string path = (folder.path() / "store").string();
  run_dying_case("[.sort-dies]", path, merging ? "0.7" : "0.3");

  const store s = store::open("local:" + path, {.workers = 2, .staging = 64_KiB});
  std::promise<std::size_t> objects;
  s.core()->nodes()[0]->list([&](const failure&, std::vector<storage::file_id> all) { objects.set_value(all.size()); });
  CHECK(objects.get_future().get() == 1);  // the temporary file is gone
  runtime rt(memory(s.core()->staging_bytes() + 16 * 4_KiB + 200_KiB));
  using array = ooc_array<std::uint64_t, 1>;
  if (merging) {
    CHECK_THROWS_WITH((array{rt, s, "a", open}),
                      Catch::Contains("in the middle of an algorithm") && Catch::Contains("sort of 'a'"));
    array a{rt, s, "a", open, {.block = 4_KiB, .unfinished = open_unfinished}};
    sort(a);
    a.close();
  }
  array a{rt, s, "a", open, {.block = 4_KiB}};
  CHECK((merging ? is_sorted(a) : is_as_filled(std::as_const(a))));
}
