// Options that must be the same on all ranks, and are not: all ranks are told so before anything is done.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>

#include "mpi/ranks.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "oocarray/algorithm/sort.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using plane = ooc_array<double, 2>;
constexpr std::size_t rows = 40, columns = 40;

/// Arrays of all ranks, one of which differs from the others.
struct differing {
  std::shared_ptr<process_group> group = all_ranks(std::chrono::seconds(20));
  bool other = group->size() > 1 && group->rank() + 1 == group->size();
  runtime rt{memory(common_store().core()->staging_bytes() + 2_MiB)};
  array_options<double> options{.block = 4_KiB, .replace = true, .group = group};
  plane a{rt, common_store(), "options/a", create, {rows, columns}, options};
  plane b{rt, common_store(), "options/b", create, {rows, columns}, options};
  plane c{rt, common_store(), "options/c", create, {rows, columns}, options};
  ooc_array<double, 1> keys{rt, common_store(), "options/keys", create, {5000}, options};

  /// Every rank throws, and says how the calls differ; no file says that somebody is in the middle.
  void refused(const std::function<void()>& call, const std::string& what = "") {
    if (group->size() == 1) {
      CHECK_NOTHROW(call());
      return;
    }
    const auto said = message_of<usage_error>([&] {
      try {
        call();
      } catch (const usage_error& e) {
        CHECK(e.code() == errc::not_together);
        throw;
      }
    });
    CHECK_THAT(said, Catch::Contains(what));
    group->barrier("all were told");
    for (const char* name : {"a", "b", "c", "keys"})
      CHECK_NOTHROW(common_store().core()->metadata().open(std::string("options/") + name, false, false));
    group->barrier("all have looked");
  }
};

auto means() {
  return stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = 0.5 * (in[-1][j] + in[1][j]);
  });
}

}  // namespace

TEST_CASE("ranks of which one does not mark are told so, and no mark stays") {
  differing d;
  const bool mark = !d.other;
  const std::string what = "without a mark";
  d.refused([&] { copy(d.a, d.b, {.mark = mark}); }, what);
  d.refused([&] { transpose(d.a, d.b, {1, 0}, {.mark = mark}); }, what);
  d.refused([&] { transpose(d.a, {.mark = mark}); }, what);
  d.refused([&] { for_each(d.a, [](double& x) { x = 1; }, {.mark = mark}); }, what);
  d.refused([&] { transform(d.a, d.b, [](double x) { return x; }, {.mark = mark}); }, what);
  d.refused([&] { ooc::inclusive_scan(d.a, d.b, std::plus<>(), {.mark = mark}); }, what);
  d.refused([&] { sweep(d.a, 3, means(), {.mark = mark}); }, what);
  d.refused([&] { ooc::sort(d.keys, std::less<>(), std::identity(), {.mark = mark}); }, what);
  d.refused([&] { ooc::sort(d.keys, std::less<>(), std::identity(), {.mark = mark, .memory = 64_KiB}); }, what);
  d.refused([&] { multiply(d.a, d.b, d.c, {.mark = mark}); }, what);
  // Nothing is written, so nothing is marked.
  CHECK_NOTHROW(reduce(d.a, 0.0, std::plus<>(), {.mark = mark}));
}

TEST_CASE("ranks whose options or boxes differ otherwise are told so") {
  differing d;
  d.refused([&] { reduce(d.a, 0.0, std::plus<>(), {.reproducible = d.other}); });
  d.refused([&] { ooc::inclusive_scan(d.a, d.b, std::plus<>(), {.reproducible = d.other}); });
  d.refused([&] { histogram(d.a, 0.0, 1.0, d.other ? 5 : 7); });
  d.refused([&] { copy(d.a, {{0, 0}, {d.other ? 9U : 10U, 5}}, d.b, {0, 0}); });
  d.refused([&] { copy(d.a, {{0, 0}, {d.other ? 0U : 10U, 5}}, d.b, {0, 0}); });
  d.refused([&] { copy(d.a, {{0, 0}, {10, 5}}, d.b, {d.other ? 1U : 0U, 0}); });
  d.refused([&] { sweep(d.a, 3, means(), {.fuse = d.other ? 1U : 2U}); });
  d.refused([&] { sweep(d.a, 3, means(), {.piece = d.other ? 100U : 200U}); });
  d.refused([&] { sweep(d.a, d.other ? 3 : 4, means()); });
  d.refused([&] { sweep(d.a, d.other ? 0 : 4, means()); });
}

TEST_CASE("ranks may differ in threads and memory") {
  differing d;
  const unsigned threads = d.other ? 3 : 1;
  const std::uint64_t memory = d.other ? 300_KiB : 600_KiB;
  CHECK_NOTHROW(copy(d.a, d.b, {.threads = threads, .memory = memory}));
  CHECK_NOTHROW(transform(d.a, d.b, [](double x) { return x; }, {.threads = threads, .memory = memory}));
  CHECK_NOTHROW(histogram(d.a, 0.0, 1.0, 7, {.threads = threads}));
  CHECK_NOTHROW(sweep(d.a, 3, means(), {.threads = threads}));
  CHECK_NOTHROW(ooc::sort(d.keys, std::less<>(), std::identity(), {.threads = threads, .memory = memory}));
  CHECK_NOTHROW(multiply(d.a, d.b, d.c, {.threads = threads, .memory = memory}));
}

TEST_CASE("what one rank refuses for its options comes out of the call on all") {
  differing d;
  if (d.group->size() == 1) return;
  CHECK_THROWS_WITH(ooc::sort(d.a, std::less<>(), std::identity(), {.flat = !d.other}),
                    Catch::Contains("options.flat"));
  CHECK_THROWS_WITH(ooc::is_sorted(d.a, std::less<>(), std::identity(), {.flat = !d.other}),
                    Catch::Contains("options.flat"));
  CHECK_NOTHROW(d.group->barrier("together again"));
}
