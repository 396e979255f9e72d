// A block that cannot be read: calls that know what they will touch throw, and the process goes on.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/faulty_io_service.hpp"
#include "support/memory_store.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using storage::faulty_io_service;
using storage::io_kind;

namespace {

constexpr std::size_t rows = 512, columns = 256;  // 1 MiB

/// A store of two nodes, the second of which can be made to fail.
struct store_that_fails {
  memory_store inner{2};
  std::shared_ptr<faulty_io_service> second = std::make_shared<faulty_io_service>(inner.nodes[1]);
  store handle{std::make_shared<storage::store_core>("memory:", "test", inner.metadata,
                                                     storage::striped_file::nodes{inner.nodes[0], second})};

  void break_reads() { second->add({.call = io_kind::read, .error = std::make_error_code(std::errc::io_error)}); }
};

template <class Layout>
void calls_throw(unsigned threads, unsigned read_ahead) {
  store_that_fails nodes;
  runtime rt(memory(2_MiB, read_ahead));
  using array = ooc_array<double, 2, Layout>;
  array_options<double> o{.block = 32_KiB, .stripes = {.sf = 32_KiB}, .fill = 1.0};
  if constexpr (std::is_same_v<Layout, layout_tiled>) o.tile = {64, 64};
  array a{rt, nodes.handle, "a", create, {rows, columns}, o}, b{rt, nodes.handle, "b", create, {rows, columns}, o};
  for (array* x : {&a, &b}) {
    for (auto t : x->tiles(access_mode::write))
      for (std::size_t i = 0; i < t.extent(0); ++i)
        for (std::size_t j = 0; j < t.extent(1); ++j) t(i, j) = 1;
    x->writeback();
    x->invalidate();
  }
  nodes.break_reads();
  const pass_options p{.threads = threads, .mark = false};
  const array& read_only = a;
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"reduce", [&] { ooc::reduce(a, 0.0, std::plus<>(), p); }},
      {"transform_reduce of two", [&] { ooc::transform_reduce(a, b, 0.0, std::plus<>(), std::multiplies<>(), p); }},
      {"histogram", [&] { ooc::histogram(a, 0.0, 2.0, 4, p); }},
      {"for_each that reads",
       [&] {
         ooc::for_each(
             read_only, [](const double&) {}, p);
       }},
      {"for_each",
       [&] {
         ooc::for_each(
             b, [](double& x) { x += 1; }, p);
       }},
      {"transform",
       [&] {
         ooc::transform(
             a, b, [](double x) { return 2 * x; }, p);
       }},
      {"transform in place",
       [&] {
         ooc::transform(
             b, b, [](double x) { return 2 * x; }, p);
       }},
      {"tiles",
       [&] {
         for (auto t : read_only.tiles()) static_cast<void>(t(0, 0));
       }},
      {"tiles to be written",
       [&] {
         for (auto t : b.tiles(access_mode::write)) t(0, 0) = 2;
       }},
  };
  for (const auto& [name, call] : calls) {
    CAPTURE(name, threads, read_ahead);
    CHECK_THROWS_WITH(call(), Catch::Contains("cannot be read"));
  }
  nodes.second->clear();
  a.invalidate();
  CHECK(ooc::reduce(a, 0.0, std::plus<>(), p).value == double{rows} * columns);
}

}  // namespace

TEST_CASE("a pass over a block that cannot be read throws, and what is whole can be read afterwards") {
  for (const unsigned threads : {1u, 3u})
    for (const unsigned read_ahead : {0u, 1u}) {
      calls_throw<layout_right>(threads, read_ahead);
      calls_throw<layout_tiled>(threads, read_ahead);
    }
}

TEST_CASE("a scan over a block that cannot be read throws") {
  store_that_fails nodes;
  runtime rt(memory(2_MiB));
  const array_options<double> o{.block = 32_KiB, .stripes = {.sf = 32_KiB}};
  ooc_array<double, 1> a{rt, nodes.handle, "a", create, {rows * columns}, o};
  ooc_array<double, 1> b{rt, nodes.handle, "b", create, {rows * columns}, o};
  std::iota(a.begin(), a.end(), 0.0);
  a.writeback();
  a.invalidate();
  nodes.break_reads();
  CHECK_THROWS_WITH(inclusive_scan(a, b, std::plus<>(), {.threads = 2, .mark = false}),
                    Catch::Contains("cannot be read"));
  CHECK_THROWS_WITH(inclusive_scan(a, a, std::plus<>(), {.threads = 2, .mark = false}),
                    Catch::Contains("cannot be read"));
}

TEST_CASE("a sweep over a block that cannot be read throws") {
  store_that_fails nodes;
  runtime rt(memory(4_MiB));
  const array_options<double> o{.block = 32_KiB, .stripes = {.sf = 32_KiB}};
  ooc_array<double, 2> a{rt, nodes.handle, "a", create, {rows, columns}, o};
  ooc_array<double, 2> b{rt, nodes.handle, "b", create, {rows, columns}, o};
  ooc::for_each(a, [](double& x) { x = 1; });
  a.invalidate();
  const auto mean = stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = 0.5 * (in[-1][j] + in[1][j]);
  });
  nodes.break_reads();
  CHECK_THROWS_WITH(sweep(a, b, 3, mean, {.mark = false}), Catch::Contains("cannot be read"));
}

TEST_CASE("a pass transfers no more because it brings in what it goes over", "[megabytes]") {
  memory_store nodes(2);
  constexpr std::size_t n = 1 << 20;  // 8 MiB
  const bool fits = GENERATE(true, false);
  runtime rt(memory(fits ? 32_MiB : 2_MiB));
  ooc_array<double, 1> a{rt, nodes.handle(), "a", create, {n}, {.block = 32_KiB}};
  ooc::for_each(a, [](double& x) { x = 1; }, {.mark = false});
  a.writeback();
  a.invalidate();
  const runtime_stats before = rt.stats();
  CHECK(ooc::reduce(a, 0.0, std::plus<>(), {.threads = 1}).value == double{n});
  const runtime_stats after = rt.stats();
  // Where memory is short, how much is read ahead in vain is a matter of the machine's load: up to four times the
  // array.
  if (fits) CHECK(after.bytes_read - before.bytes_read <= n * sizeof(double));
  CHECK(after.faults - before.faults <= n * sizeof(double) / 32_KiB);
}
