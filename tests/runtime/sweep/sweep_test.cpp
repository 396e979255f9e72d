// Fused sweeps: bit by bit what step by step gives, in the budget, and with the traffic of the model.

#include "oocarray/algorithm/sweep.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/algorithm/sweep_model.hpp"
#include "support/dying_case.hpp"
#include "support/rounds.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <std::size_t N>
void sweep_at_random(int times, store_kind kind, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  int cut = 0;
  const int all = rounds(times, 5 * times);
  for (int n = all; n > 0; --n) {
    const random_sweep<N> s(g);
    CAPTURE(s.describe());
    const test_store nodes(kind);
    runtime rt(memory(nodes.staging() + 16 * 4_KiB + (between(g, 0, 1) ? 4_MiB : 1_MiB)));
    const array_options<double> o{.block = 4_KiB * between(g, 1, 3)};
    ooc_array<double, N> a{rt, nodes.handle(), "a", create, s.extents, o};
    ooc_array<double, N> b{rt, nodes.handle(), "b", create, s.extents, o};
    ooc_array<double, N> c{rt, nodes.handle(), "c", create, s.extents, o};
    std::vector<double> plain(s.size()), factor(s.size());
    for (std::size_t e = 0; e < s.size(); ++e) {
      a.data()[e] = plain[e] = static_cast<double>(between(g, 0, 1000)) / 7;
      c.data()[e] = factor[e] = static_cast<double>(between(g, 0, 1000)) / 900;
      b.data()[e] = -1;
    }
    const bool in_place = between(g, 0, 1);
    const swept_in_memory expected = step_by_step(s, plain, factor);
    std::vector<double> sums;
    std::size_t steps = 0;
    with_stencil(s, &c, [&](const auto& st) {
      const auto r = in_place ? sweep(a, s.steps, st, s.options) : sweep(a, b, s.steps, st, s.options);
      sums = r.values;
      steps = r.steps;
      cut += r.parts > 1;
    });
    CAPTURE(in_place);
    REQUIRE(steps == s.steps);
    REQUIRE(sums == expected.sums);
    const double* const found = in_place ? a.data() : b.data();
    std::size_t wrong = 0;
    for (std::size_t e = 0; e < s.size(); ++e)
      wrong += std::memcmp(&found[e], &expected.elements[e], sizeof(double)) != 0;
    REQUIRE(wrong == 0);
    if (!in_place) REQUIRE(std::equal(plain.begin(), plain.end(), std::as_const(a).data()));
  }
  CHECK((N == 1 || times < 50 || cut > all / 20));
}

/// Jacobi's iteration.
auto average() {
  return stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
  });
}

template <std::size_t N>
void former_at_random(int times, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  int cut = 0;
  const int all = rounds(times, 5 * times);
  for (int n = all; n > 0; --n) {
    const random_sweep<N> s(g);
    CAPTURE(s.describe());
    two_levels plain(s);
    const test_store nodes(store_kind::in_memory);
    runtime rt(memory(nodes.staging() + 16 * 4_KiB + 4_MiB));
    const array_options<double> o{.block = 4_KiB * between(g, 1, 3)};
    ooc_array<double, N> u{rt, nodes.handle(), "u", create, s.extents, o};
    ooc_array<double, N> v{rt, nodes.handle(), "v", create, s.extents, o};
    ooc_array<double, N> p{rt, nodes.handle(), "p", create, s.extents, o};
    ooc_array<double, N> q{rt, nodes.handle(), "q", create, s.extents, o};
    ooc_array<double, N> c{rt, nodes.handle(), "c", create, s.extents, o};
    for (std::size_t e = 0; e < s.size(); ++e) {
      plain.u.push_back(u.data()[e] = static_cast<double>(between(g, 0, 1000)) / 7);
      plain.v.push_back(v.data()[e] = static_cast<double>(between(g, 0, 1000)) / 9);
      c.data()[e] = static_cast<double>(between(g, 0, 1000)) / 900;
    }
    if (s.coefficient) plain.c.assign(c.data(), c.data() + s.size());
    const two_levels before = plain;
    const bool in_place = between(g, 0, 1);
    CAPTURE(in_place);
    with_rest(leapfrog<N>(s.radius), s, &c, [&](const auto& wave) {
      cut += (in_place ? sweep(std::tie(u, v), s.steps, wave, s.options)
                       : sweep(std::tie(u, v), std::tie(p, q), s.steps, wave, s.options))
                 .parts > 1;
    });
    for (std::size_t t = 0; t < s.steps; ++t) plain.step();
    const auto holds = [](const std::vector<double>& expected, const ooc_array<double, N>& found) {
      return std::equal(expected.begin(), expected.end(), found.data());
    };
    REQUIRE(holds(plain.u, in_place ? u : p));
    REQUIRE(holds(plain.v, in_place ? v : q));
    if (!in_place) REQUIRE((holds(before.u, u) && holds(before.v, v)));
  }
  CHECK((N == 1 || cut > all / 20));
}

}  // namespace

TEST_CASE("a fused sweep of a line is that of step by step") {
  sweep_at_random<1>(60, store_kind::in_memory, random_seed("sweep of a line"));
}

TEST_CASE("a fused sweep of a plane is that of step by step") {
  sweep_at_random<2>(80, store_kind::in_memory, random_seed("sweep of a plane"));
}

TEST_CASE("a fused sweep of a body is that of step by step") {
  sweep_at_random<3>(80, store_kind::in_memory, random_seed("sweep of a body"));
}

TEST_CASE("a fused sweep of an embedded store is that of step by step") {
  const std::uint64_t seed = random_seed("sweep of an embedded store");
  sweep_at_random<2>(6, store_kind::local, seed);
  sweep_at_random<3>(6, store_kind::local, seed);
}

TEST_CASE("a sweep by no steps copies what it reads, and leaves alone what it sweeps in place") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  const array_options<double> o{.block = 4_KiB, .fill = 9.0};
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {300, 40}, o};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {300, 40}, o};
  ooc_array<double, 2> c{rt, nodes.handle(), "c", create, {300, 40}, o};
  for (std::size_t e = 0; e < a.size(); ++e) a.data()[e] = static_cast<double>(e);
  CHECK(sweep(b, 0, average()).passes == 0);
  CHECK(std::count(b.begin(), b.end(), 9.0) == 300 * 40);
  const auto done = sweep(std::as_const(a), b, 0, average());
  CHECK(done.steps == 0);
  CHECK(done.bytes_written == 300 * 40 * sizeof(double));
  CHECK(std::equal(a.begin(), a.end(), b.begin()));
  const auto both = stencil({1, 1}, [](auto&, const auto&) {});
  b(0, 0) = -1;
  sweep(std::tie(b, a), std::tie(b, c), 0, both);
  CHECK(b(0, 0) == -1);
  CHECK(std::equal(a.begin(), a.end(), c.begin()));
}

TEST_CASE("whether ends meet may be known at run time only") {
  const auto s = average().periodic(1);
  CHECK(s.periodic(0, true).boundaries == std::array{boundary::periodic, boundary::periodic});
  CHECK(s.periodic(1, false).boundaries == std::array{boundary::fixed, boundary::fixed});
}

TEST_CASE("a sweep reads and writes the array once a pass, whatever part of it memory holds", "[megabytes]") {
  const bool in_place = GENERATE(true, false);
  const test_store nodes(store_kind::in_memory);
  // 8 MiB in 2 MiB.  In 1 MiB read-ahead has 16 blocks left, and on a slow machine fetches one in ten of
  // them in vain, at the front of the writes.
  constexpr std::size_t n = 1024, fuse = 8, steps = 16;
  runtime rt(memory(nodes.staging() + 2_MiB));
  const array_options<double> o{.block = 32_KiB};
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, o};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {n, n}, o};
  for (std::size_t e = 0; e < n * n; ++e) a.data()[e] = static_cast<double>(e % 1000);
  a.writeback();
  a.invalidate();
  const runtime_stats before = rt.stats();
  const sweep_options options{.fuse = fuse, .threads = 2, .mark = false};
  const auto r = in_place ? sweep(a, steps, average(), options) : sweep(a, b, steps, average(), options);
  (in_place ? a : b).writeback();
  const runtime_stats after = rt.stats();
  CAPTURE(in_place, r.memory, after.bytes_reread - before.bytes_reread,
          after.read_ahead_waste - before.read_ahead_waste, after.read_ahead_blocks - before.read_ahead_blocks,
          after.loads_avoided - before.loads_avoided, after.faults - before.faults);
  CHECK(r.passes == 2);
  CHECK(r.fuse == fuse);
  CHECK(r.bytes_read == 2 * n * n * sizeof(double));
  CHECK(r.bytes_written == 2 * n * n * sizeof(double));
  CHECK(after.bytes_read - before.bytes_read <= r.bytes_read * 105 / 100);
  CHECK(after.bytes_written - before.bytes_written <= r.bytes_written * 105 / 100);
}

TEST_CASE("the wave equation sweeps two fields and a coefficient together") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  constexpr std::size_t rows = 60, cols = 41, steps = 25;
  const array_options<double> o{.block = 4_KiB};
  ooc_array<double, 2> now{rt, nodes.handle(), "now", create, {rows, cols}, o};
  ooc_array<float, 2> former{rt, nodes.handle(), "former", create, {rows, cols}, {.block = 4_KiB}};
  ooc_array<double, 2> speed{rt, nodes.handle(), "speed", create, {rows, cols}, o};
  const auto start = [](std::size_t i, std::size_t j) { return static_cast<double>((i * j) % 17); };
  std::vector<double> u(rows * cols), c(rows * cols);
  std::vector<float> v(rows * cols);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) {
      now[i][j] = u[i * cols + j] = start(i, j);
      former[i][j] = v[i * cols + j] = static_cast<float>(start(i, j));
      speed[i][j] = c[i * cols + j] = 0.1 + 0.001 * static_cast<double>(i);
    }
  for (std::size_t t = 0; t < steps; ++t) {
    std::vector<double> u1 = u;
    std::vector<float> v1 = v;
    for (std::size_t i = 1; i + 1 < rows; ++i)
      for (std::size_t j = 1; j + 1 < cols; ++j) {
        const std::size_t e = i * cols + j;
        u1[e] = 2 * u[e] - v[e] + c[e] * (u[e - cols] + u[e + cols] + u[e - 1] + u[e + 1] - 4 * u[e]);
        v1[e] = static_cast<float>(u[e]);
      }
    u = u1;
    v = v1;
  }
  const auto wave =
      stencil({1, 1}, [](auto& out, const auto& in, const auto& k) {
        const auto& [x, y] = in;
        auto [x1, y1] = out;
        for (auto j = out.lower(1); j < out.upper(1); ++j) {
          x1[j] = 2 * x[0][j] - y[0][j] + k[0][j] * (x[-1][j] + x[1][j] + x[0][j - 1] + x[0][j + 1] - 4 * x[0][j]);
          y1[j] = static_cast<float>(x[0][j]);
        }
      }).with(speed);
  // To other arrays first, so that the two are left as they were.
  ooc_array<double, 2> later{rt, nodes.handle(), "later", create, {rows, cols}, o};
  ooc_array<float, 2> before{rt, nodes.handle(), "before", create, {rows, cols}, {.block = 4_KiB}};
  sweep(std::tie(std::as_const(now), former), std::tie(later, before), steps, wave, {.fuse = 4, .threads = 2});
  CHECK(std::equal(u.begin(), u.end(), std::as_const(later).data()));
  CHECK(std::equal(v.begin(), v.end(), std::as_const(before).data()));
  const auto r = sweep(std::tie(now, former), steps, wave, {.fuse = 4, .threads = 2, .group = 1});
  CHECK(r.passes == 7);
  CHECK(std::equal(u.begin(), u.end(), std::as_const(now).data()));
  CHECK(std::equal(v.begin(), v.end(), std::as_const(former).data()));
}

TEST_CASE("a field that is the first one a step before is kept by the library, on lines and in bodies") {
  former_at_random<1>(40, random_seed("former values of a line"));
  former_at_random<3>(80, random_seed("former values of a body"));
}

TEST_CASE("a field that is the first one a step before takes little memory, so that more steps are fused",
          "[megabytes]") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  constexpr std::size_t n = 96, steps = 8;
  ooc_array<double, 3> u{rt, nodes.handle(), "u", create, {n, n, n}, {.block = 64_KiB}};
  ooc_array<double, 3> v{rt, nodes.handle(), "v", create, {n, n, n}, {.block = 64_KiB}};
  const auto kept = leapfrog<3>({2, 2, 2});
  auto computed = kept;
  computed.former = false;
  const sweep_options options{.fuse = 8, .threads = 2, .mark = false, .group = 1, .width = 16};
  const auto with = sweep(std::tie(u, v), steps, kept, options);
  const auto without = sweep(std::tie(u, v), steps, computed, options);
  CAPTURE(with.memory, without.memory, with.bytes_read, without.bytes_read);
  CHECK(with.memory < without.memory * 4 / 5);
  CHECK(with.bytes_read < without.bytes_read);
}

TEST_CASE("pieces and parts that are wider than the array are the whole of it") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 4_MiB));
  const std::size_t wide =
      GENERATE(std::numeric_limits<std::size_t>::max(), std::size_t{1} << 61, std::size_t{1} << 32);
  const auto same = [&](const auto& mean, auto extents, const sweep_options& options) {
    using array = ooc_array<double, std::tuple_size_v<decltype(extents)>>;
    array a{rt, nodes.handle(), "a", create, extents, {.block = 4_KiB, .replace = true}};
    array b{rt, nodes.handle(), "b", create, extents, {.block = 4_KiB, .replace = true}};
    for (std::size_t e = 0; e < a.size(); ++e) a.data()[e] = b.data()[e] = std::sin(static_cast<double>(e));
    sweep(a, 3, mean, options);
    sweep(b, 3, mean);
    return std::equal(a.data(), a.data() + a.size(), b.data());
  };
  const auto of_line = stencil({1}, [](auto& out, const auto& in) { out.value() = in[-1] + in[1]; });
  CHECK(same(of_line, std::array<std::size_t, 1>{10'000}, {.piece = wide}));
  CHECK(same(average(), std::array<std::size_t, 2>{60, 37}, {.width = wide, .piece = wide}));
  CHECK(same(average(), std::array<std::size_t, 2>{60, 512}, {.width = wide}));  // rows of whole chunks
}

TEST_CASE("a kernel has rows as spans, of slabs that are whole or cut, at ends that meet too") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 2_MiB));
  const std::size_t width = GENERATE(0, 64);
  const sweep_options options{.fuse = 3, .threads = 2, .mark = false, .width = width};
  const auto same = [&](auto by_index, auto by_span, auto extents) {
    using array = ooc_array<double, std::tuple_size_v<decltype(extents)>>;
    array a{rt, nodes.handle(), "a", create, extents, {.block = 4_KiB, .replace = true}};
    array b{rt, nodes.handle(), "b", create, extents, {.block = 4_KiB, .replace = true}};
    for (std::size_t e = 0; e < a.size(); ++e) a.data()[e] = b.data()[e] = std::sin(static_cast<double>(e));
    CHECK((sweep(a, 7, by_index, options).parts > 1) == (width != 0));
    sweep(b, 7, by_span, options);
    return std::equal(a.data(), a.data() + a.size(), b.data());
  };
  const auto row_by_span = stencil({1, 1}, [](auto& out, const auto& in) {
                             const auto l = out.lower(1), u = out.upper(1);
                             const std::span<double> to = out.span();
                             const std::span<const double> up = in[-1].span(l, u), down = in[1].span(l, u),
                                                           beside = in[0].span(l - 1, u + 1);
                             for (std::size_t j = 0; j < to.size(); ++j)
                               to[j] = 0.25 * (up[j] + down[j] + beside[j] + beside[j + 2]);
                           }).periodic(1);
  CHECK(same(average().periodic(1), row_by_span, std::array<std::size_t, 2>{40, 700}));
  const auto plane = stencil({1, 1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      for (auto l = out.lower(2); l < out.upper(2); ++l) out[j][l] = in[-1][j][l] + in[0][j - 1][l] + in[0][j][l + 1];
  });
  const auto plane_by_span = stencil({1, 1, 1}, [](auto& out, const auto& in) {
    const auto l = out.lower(2), u = out.upper(2);
    for (auto j = out.lower(1); j < out.upper(1); ++j) {
      const auto to = out[j].span(l, u);
      const auto x = in[-1][j].span(l, u), y = in[0][j - 1].span(l, u), z = in[0][j].span(l + 1, u + 1);
      for (std::size_t n = 0; n < to.size(); ++n) to[n] = x[n] + y[n] + z[n];
    }
  });
  CHECK(same(plane, plane_by_span, std::array<std::size_t, 3>{9, 130, 40}));
}

TEST_CASE("more threads fuse more steps, as long as memory and their caches hold the rows between", "[megabytes]") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 64_MiB));
  const auto fused = [&](unsigned threads, std::size_t cols) {
    ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {20, cols}, {.block = 32_KiB, .replace = true}};
    return sweep(a, 256, average(), {.threads = threads, .mark = false}).fuse;
  };
  CHECK(fused(1, 64) == 32);
  CHECK(fused(2, 64) == 32);
  CHECK(fused(4, 64) == 64);
  CHECK(fused(8, 64) == 128);
  CHECK(fused(8, 16384) == 32);
}

TEST_CASE("progress is told within the passes of a sweep, which it can cancel, and the file says so") {
  const std::size_t width = GENERATE(0, 128);
  const bool in_place = GENERATE(true, false);
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 4_MiB));
  using array = ooc_array<double, 2>;
  const array_options<double> o{.block = 4_KiB};
  constexpr std::size_t rows = 300, cols = 1024;
  array a{rt, nodes.handle(), "a", create, {rows, cols}, o};
  std::vector<double> told;
  {
    array b{rt, nodes.handle(), "b", create, {rows, cols}, o};
    const auto run = [&](auto progress) {
      // 3 + 3 + 1 + 3 steps
      const sweep_options options{.fuse = 3, .threads = 2, .width = width, .progress = progress};
      const auto st = average().after(7, [](std::size_t) {});
      return in_place ? sweep(b, 10, st, options) : sweep(a, b, 10, st, options);
    };
    const auto whole = run([&](const pass_progress& p) {
      CHECK(p.all == 4 * 2 * rows * cols * sizeof(double));
      told.push_back(p.part());
      return true;
    });
    CHECK(whole.passes == 4);
    CHECK((whole.parts > 1) == (width != 0));
    REQUIRE(told.size() > 20);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.front() < 0.1);
    CHECK(told.back() == 1);
    try {
      run([](const pass_progress& p) { return p.part() < 0.4; });
      FAIL("it was cancelled");
    } catch (const error& e) {
      CHECK(e.code() == std::errc::operation_canceled);
      CHECK_THAT(e.what(), Catch::Contains("' by 10 steps: the progress callback has cancelled it"));
    }
    b[1][1] = 5;  // and it can be used
    CHECK(b[1][1] == 5);
  }
  CHECK_THROWS_WITH((array{rt, nodes.handle(), "b", open}), Catch::Contains("in the middle of an algorithm"));
  CHECK(std::count(std::as_const(a).begin(), std::as_const(a).end(), 0.0) == rows * cols);
  array b{rt, nodes.handle(), "b", open, {.unfinished = open_unfinished}};
  sweep(b, 1, average());
  b.close();
  CHECK_NOTHROW(array{rt, nodes.handle(), "b", open});
}

TEST_CASE("the callback sees the residual and ends the sweep") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  constexpr std::size_t n = 40;
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB}};
  for (std::size_t j = 0; j < n; ++j) a[0][j] = 1;
  std::vector<std::pair<std::size_t, double>> told;
  const auto st = stencil({1, 1}, [](auto& out, const auto& in) {
                    double change = 0;
                    for (auto j = out.lower(1); j < out.upper(1); ++j) {
                      out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
                      change = std::max(change, std::abs(out[j] - in[0][j]));
                    }
                    return change;
                  }).reduce(0.0, [](double x, double y) {
                      return std::max(x, y);
                    }).after(10, [&](std::size_t step, double change) {
    told.emplace_back(step, change);
    return change > 0.01;
  });
  const auto r = sweep(a, 1000, st, {.fuse = 4});
  REQUIRE(!told.empty());
  CHECK(r.steps == told.back().first);
  CHECK(r.steps < 1000);
  CHECK(r.steps % 10 == 0);
  CHECK(told.back().second <= 0.01);
  CHECK(r.values.size() == told.size());
  CHECK(r.values.back() == told.back().second);
}

TEST_CASE("a sweep is told whether any part of it says so") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  constexpr std::size_t n = 64;
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {n, n}, {.block = 4_KiB}};
  const std::size_t warm = GENERATE(0, 1, 17, 31, 62);  // at an end nothing is computed
  a[warm][20] = 1;
  std::vector<bool> told;
  const auto st = stencil({1, 1},
                          [](auto& out, const auto& in) {
                            bool any = false;
                            for (auto j = out.lower(1); j < out.upper(1); ++j) any = (out[j] = in[0][j]) != 0 || any;
                            return any;
                          })
                      .reduce(false, std::logical_or<>())
                      .after(2, [&](std::size_t, bool any) { told.push_back(any); });
  const auto r = sweep(a, 4, st, {.threads = 8, .piece = 8});
  CHECK(r.values == std::vector<bool>(2, warm != 0));
  CHECK(told == r.values);
}

TEST_CASE("a residual that is rounded is the same to the last bit, whatever threads, steps fused and parts") {
  const test_store nodes(store_kind::in_memory);
  const auto check = [&]<std::size_t N>(const std::array<std::size_t, N>& extents) {
    const auto residuals = [&](const sweep_options& options, std::size_t& parts) {
      runtime rt(memory(nodes.staging() + 2_MiB));
      ooc_array<double, N> a{rt, nodes.handle(), "a", create, extents, {.block = 4_KiB, .replace = true}};
      for (std::size_t e = 0; e < a.size(); ++e) a.data()[e] = std::sin(static_cast<double>(e));
      const auto r = sweep(a, 11, relaxation<N>(3), options);
      parts = r.parts;
      return r.values;
    };
    std::size_t parts = 0, most_parts = 0;
    constexpr std::size_t piece = 100;
    const auto first = residuals({.fuse = 1, .threads = 1, .mark = false, .piece = piece}, parts);
    REQUIRE(first.size() == 4);
    CHECK(parts == 1);
    for (const std::size_t fuse : {1U, 2U, 0U})
      for (const unsigned threads : {1U, 3U, 8U})
        for (const std::size_t width : {0U, 10U}) {
          CAPTURE(N, fuse, threads, width);
          REQUIRE(residuals({.fuse = fuse,
                             .threads = threads,
                             .mark = false,
                             .group = threads % 3,
                             .width = width,
                             .piece = piece},
                            parts) == first);
          most_parts = std::max(most_parts, parts);
        }
    CHECK((N == 1) == (most_parts == 1));
    // Other pieces round otherwise, so the residual does tell in which order it was taken.
    if (N > 1) CHECK(residuals({.mark = false, .piece = piece / 4}, parts) != first);
  };
  check(std::array<std::size_t, 1>{3000});
  check(std::array<std::size_t, 2>{40, 500});
  check(std::array<std::size_t, 3>{12, 40, 20});
}

namespace {

/// The budget that the message asks for, where there is one.
std::uint64_t asked_for(const usage_error& e) {
  const std::string what = e.what(), give = "give the runtime ";
  CAPTURE(what);
  REQUIRE(e.code() == errc::budget_too_small);
  REQUIRE(what.find(give) != std::string::npos);
  return std::stoull(what.substr(what.find(give) + give.size()));
}

}  // namespace

TEST_CASE("a budget that cannot hold one step is refused, naming what would do") {
  const test_store nodes(store_kind::in_memory);
  constexpr std::size_t cols = 16384;
  const auto options = array_options<double>{.block = 4_KiB};
  const auto whole = average().edges([](auto&, const auto&) {});  // slabs that must not be cut
  std::uint64_t more = 0;
  {
    runtime rt(memory(nodes.staging() + 256_KiB));
    ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {8, cols}, options};
    try {
      sweep(a, 3, whole);
      FAIL("a sweep of long rows in no memory");
    } catch (const usage_error& e) {
      more = asked_for(e);
    }
    CHECK(a[1][1] == 0);  // and it can be used
  }
  runtime rt(memory(nodes.staging() + 256_KiB + more));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", open, options};
  CHECK(sweep(a, 3, whole).passes == 3);
}

TEST_CASE("planes are cut as narrow as the least memory makes them, and the result is that of step by step") {
  std::mt19937_64 g(random_seed("sweep in the least memory"));
  std::size_t refused = 0, cut = 0;
  for (int n = rounds(12, 60); n > 0; --n) {
    random_sweep<3> s(g);
    s.extents = {between(g, 1, 9), between(g, 30, 60), between(g, 30, 60)};
    s.steps = between(g, 1, 4);
    s.edges_in_parts = true;
    s.options.width = s.options.group = 0;
    s.options.piece = between(g, 1, 100);
    CAPTURE(s.describe());
    const test_store nodes(store_kind::in_memory);
    std::vector<double> plain(s.size()), factor(s.size());
    for (double& x : plain) x = static_cast<double>(between(g, 0, 1000)) / 7;
    for (double& x : factor) x = static_cast<double>(between(g, 0, 1000)) / 900;
    const swept_in_memory expected = step_by_step(s, plain, factor);
    const array_options<double> o{.block = 4_KiB, .replace = true};
    std::uint64_t budget = nodes.staging() + 16 * 4_KiB;
    for (int attempt = 0;; ++attempt) {
      REQUIRE(attempt < 3);
      runtime rt(memory(budget));
      ooc_array<double, 3> a{rt, nodes.handle(), "a", create, s.extents, o};
      ooc_array<double, 3> c{rt, nodes.handle(), "c", create, s.extents, o};
      std::copy(plain.begin(), plain.end(), a.data());
      std::copy(factor.begin(), factor.end(), c.data());
      try {
        std::vector<double> sums;
        with_stencil(s, &c, [&](const auto& st) {
          const auto r = sweep(a, s.steps, st, s.options);
          sums = r.values;
          cut += r.parts > 1;
        });
        REQUIRE(sums == expected.sums);
        REQUIRE(std::equal(expected.elements.begin(), expected.elements.end(), std::as_const(a).data()));
        break;
      } catch (const usage_error& e) {
        budget += asked_for(e);
        ++refused;
      }
    }
  }
  CHECK(refused > 0);
  CHECK(cut > 0);
}

TEST_CASE("planes that do not fit are cut, and the sweep transfers what the model says", "[megabytes]") {
  const bool in_place = GENERATE(true, false);
  const test_store nodes(store_kind::in_memory);
  // 16 MiB in 4 MiB, of which two steps of whole planes would take all.
  constexpr std::size_t n = 128, steps = 8;
  runtime rt(memory(nodes.staging() + 4_MiB));
  const array_options<double> o{.block = 64_KiB};
  ooc_array<double, 3> a{rt, nodes.handle(), "a", create, {n, n, n}, o};
  ooc_array<double, 3> b{rt, nodes.handle(), "b", create, {n, n, n}, o};
  for (std::size_t e = 0; e < n * n * n; ++e) a.data()[e] = static_cast<double>(e % 1000);
  const auto st = stencil({2, 2, 2}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      for (auto l = out.lower(2); l < out.upper(2); ++l)
        out[j][l] = 0.25 * (in[-2][j][l] + in[2][j][l] + in[0][j - 2][l] + in[0][j][l + 2]);
  });
  a.writeback();
  a.invalidate();
  const runtime_stats before = rt.stats();
  const sweep_options options{.threads = 2, .mark = false};
  const auto r = in_place ? sweep(a, steps, st, options) : sweep(a, b, steps, st, options);
  const runtime_stats after = rt.stats();
  CAPTURE(r.fuse, r.parts, r.passes, r.memory, r.bytes_read, r.bytes_written);
  CHECK(r.parts > 1);
  CHECK(r.fuse >= 4);
  CHECK(after.bytes_read - before.bytes_read <= r.bytes_read * 105 / 100);
  CHECK(after.bytes_written - before.bytes_written <= r.bytes_written);
  CHECK(r.bytes_read < steps * n * n * n * sizeof(double) / 2);
}

TEST_CASE("what a kernel throws comes out of the sweep, and the array can be used") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {50, 50}, {.block = 4_KiB}};
  struct too_hot {};
  const auto st = stencil({1, 1}, [](auto& out, const auto&) {
    if (out.index() == 20 && out.step() == 3) throw too_hot{};
  });
  CHECK_THROWS_AS(sweep(a, 9, st, {.fuse = 3, .threads = 3}), too_hot);
  a[1][1] = 5;
  CHECK(a[1][1] == 5);
}

namespace {

/// The kernel ends the process, as kill -9 does, in the second pass.
auto deadly() {
  return stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = in[-1][j] + in[1][j];
    if (out.step() == 7 && out.index() == 300) ::raise(SIGKILL);
  });
}

}  // namespace

// The next test runs this in a process of its own.
TEST_CASE("a sweep that dies", "[.dies]") {
  const store s = store::open(url_of_dying_case(), {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 1_MiB));
  ooc_array<double, 2> a{rt, s, "a", create, {1024, 512}, {.block = 32_KiB}};
  for (std::size_t i = 0; i < 1024; ++i) a[i][0] = static_cast<double>(i);
  a.writeback();
  sweep(a, 12, deadly(), {.fuse = 4});
}

TEST_CASE("a process that dies in a sweep leaves a mark, which opening names", "[own-store]") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "store").string();
  run_dying_case("[.dies]", path);

  const store s = store::open("local:" + path, {.workers = 2, .staging = 64_KiB});
  runtime rt(memory(s.core()->staging_bytes() + 1_MiB));
  using array = ooc_array<double, 2>;
  CHECK_THROWS_WITH((array{rt, s, "a", open}), Catch::Contains("'a' is in the middle of an algorithm") &&
                                                   Catch::Contains("sweep of 'a' by 12 steps, by test_sweep[") &&
                                                   Catch::Contains("ooc::open_unfinished"));
  CHECK_THROWS_WITH((array{rt, s, "a", open_read_only}), Catch::Contains("in the middle"));
  const array_options<double> told{.block = 32_KiB, .unfinished = open_unfinished};
  {
    array a{rt, s, "a", open, told};
    CHECK(a.extent(0) == 1024);
  }
  CHECK_THROWS_WITH((array{rt, s, "a", open}), Catch::Contains("in the middle"));
  {
    array a{rt, s, "a", open, told};
    sweep(a, 2, average());
  }
  CHECK_NOTHROW(array{rt, s, "a", open});
}

TEST_CASE("what an exception leaves in the middle is good again when the program says so") {
  const test_store nodes(store_kind::local);
  runtime rt(memory(nodes.staging() + 1_MiB));
  using array = ooc_array<double, 2>;
  {
    array a{rt, nodes.handle(), "a", create, {64, 64}, {.block = 4_KiB}};
    const auto st = stencil({1, 1}, [](auto&, const auto&) { throw std::runtime_error("too hot"); });
    CHECK_THROWS(sweep(a, 2, st));
  }
  CHECK_THROWS_WITH((array{rt, nodes.handle(), "a", open}), Catch::Contains("sweep of 'a' by 2 steps"));
  {
    array a{rt, nodes.handle(), "a", open, {.unfinished = open_unfinished}};
    for (double& x : a) x = 1;
    a.writeback(durable);
    a.set_finished();
  }
  CHECK_NOTHROW(array{rt, nodes.handle(), "a", open});
}

TEST_CASE("arrays that do not fit together are refused by name") {
  const test_store nodes(store_kind::in_memory);
  runtime rt(memory(nodes.staging() + 1_MiB));
  const array_options<double> o{.block = 4_KiB};
  ooc_array<double, 2> a{rt, nodes.handle(), "a", create, {50, 50}, o};
  ooc_array<double, 2> b{rt, nodes.handle(), "b", create, {50, 51}, o};
  CHECK_THROWS_WITH(sweep(a, b, 1, average()), Catch::Contains("'b' have not the same extents"));
  CHECK_THROWS_WITH(sweep(std::tie(a, a), 1, stencil({1, 1}, [](auto&, const auto&) {})),
                    Catch::Contains("is given twice, and is written"));
  const auto scaled = stencil({1, 1}, [](auto&, const auto&, const auto&) {});
  CHECK_THROWS_WITH(sweep(a, 1, scaled.with(b)), Catch::Contains("coefficient 'b'"));
  CHECK_THROWS_WITH(sweep(a, 1, scaled.with(a)), Catch::Contains("is a coefficient, and is written"));
}
