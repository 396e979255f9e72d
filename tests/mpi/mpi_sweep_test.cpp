// Fused sweeps on several ranks: bit by bit what one process computes step by step.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "mpi/ranks.hpp"
#include "support/algorithm/sweep_model.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <std::size_t N>
void sweep_at_random(int times, std::uint64_t salt) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int n = rounds(times, 5 * times); n > 0; --n) {
    const random_sweep<N> s(g);
    CAPTURE(s.describe());
    runtime rt(memory(st.core()->staging_bytes() + 24 * 4_KiB + (between(g, 0, 1) ? 4_MiB : 1_MiB)));
    array_options<double> o{.block = 4_KiB * between(g, 1, 2), .replace = true, .group = group};
    o.owner_computes = between(g, 0, 1);
    ooc_array<double, N> a{rt, st, "sweep/a", create, s.extents, o};
    ooc_array<double, N> b{rt, st, "sweep/b", create, s.extents, o};
    ooc_array<double, N> c{rt, st, "sweep/c", create, s.extents, o};
    const auto [first, last] = a.local_rows();
    const std::size_t row = s.size() / s.extents[0];
    std::vector<double> plain(s.size()), factor(s.size());
    for (std::size_t e = 0; e < s.size(); ++e) {
      plain[e] = static_cast<double>(between(g, 0, 1000)) / 7;
      factor[e] = static_cast<double>(between(g, 0, 1000)) / 900;
    }
    for (std::size_t e = first * row; e < last * row; ++e) {
      a.data()[e] = plain[e];
      c.data()[e] = factor[e];
    }
    c.sync();
    const bool in_place = between(g, 0, 1);
    CAPTURE(in_place, o.owner_computes);
    const swept_in_memory expected = step_by_step(s, plain, factor);
    std::vector<double> sums;
    with_stencil(s, &c, [&](const auto& stencil) {
      sums = (in_place ? sweep(a, s.steps, stencil, s.options) : sweep(a, b, s.steps, stencil, s.options)).values;
    });
    REQUIRE(sums == expected.sums);
    ooc_array<double, N>& result = in_place ? a : b;
    result.sync();
    std::size_t wrong = 0;
    for (std::size_t e = 0; e < s.size(); ++e)
      wrong += std::memcmp(&std::as_const(result).data()[e], &expected.elements[e], sizeof(double)) != 0;
    REQUIRE(wrong == 0);
    group->barrier("all have compared");
    a.close();
    b.close();
    c.close();
  }
}

template <std::size_t N>
void former_at_random(int times, std::uint64_t salt) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int n = rounds(times, 5 * times); n > 0; --n) {
    const random_sweep<N> s(g);
    CAPTURE(s.describe());
    two_levels plain(s);
    for (std::size_t e = 0; e < s.size(); ++e) {
      plain.u.push_back(static_cast<double>(between(g, 0, 1000)) / 7);
      plain.v.push_back(static_cast<double>(between(g, 0, 1000)) / 9);
      if (s.coefficient) plain.c.push_back(static_cast<double>(between(g, 0, 1000)) / 900);
    }
    runtime rt(memory(st.core()->staging_bytes() + 24 * 4_KiB + 4_MiB));
    const array_options<double> o{.block = 4_KiB * between(g, 1, 2), .replace = true, .group = group};
    ooc_array<double, N> u{rt, st, "sweep/u", create, s.extents, o};
    ooc_array<double, N> v{rt, st, "sweep/v", create, s.extents, o};
    ooc_array<double, N> p{rt, st, "sweep/p", create, s.extents, o};
    ooc_array<double, N> q{rt, st, "sweep/q", create, s.extents, o};
    ooc_array<double, N> c{rt, st, "sweep/factor", create, s.extents, o};
    const auto [first, last] = u.local_rows();
    const std::size_t row = s.size() / s.extents[0];
    for (std::size_t e = first * row; e < last * row; ++e) {
      u.data()[e] = plain.u[e];
      v.data()[e] = plain.v[e];
      if (s.coefficient) c.data()[e] = plain.c[e];
    }
    c.sync();
    const bool in_place = between(g, 0, 1);
    CAPTURE(in_place);
    with_rest(leapfrog<N>(s.radius), s, &c, [&](const auto& wave) {
      if (in_place)
        sweep(std::tie(u, v), s.steps, wave, s.options);
      else
        sweep(std::tie(u, v), std::tie(p, q), s.steps, wave, s.options);
    });
    ooc_array<double, N>& now = in_place ? u : p;
    ooc_array<double, N>& former = in_place ? v : q;
    now.sync();
    former.sync();
    for (std::size_t t = 0; t < s.steps; ++t) plain.step();
    REQUIRE(std::equal(plain.u.begin(), plain.u.end(), std::as_const(now).data()));
    REQUIRE(std::equal(plain.v.begin(), plain.v.end(), std::as_const(former).data()));
    group->barrier("all have compared");
    for (ooc_array<double, N>* x : {&u, &v, &p, &q, &c}) x->close();
  }
}

}  // namespace

TEST_CASE("ranks sweep a line as one process does") { sweep_at_random<1>(25, 31); }

TEST_CASE("ranks sweep a plane as one process does") { sweep_at_random<2>(40, 32); }

TEST_CASE("ranks sweep a body as one process does") { sweep_at_random<3>(40, 33); }

TEST_CASE("ranks keep the former values of lines and bodies as one process does") {
  former_at_random<1>(12, 34);
  former_at_random<3>(15, 35);
}

TEST_CASE("a residual that is rounded is that of one process to the last bit, for planes and bodies") {
  const auto group = all_ranks();
  const store st = common_store();
  const auto residuals = [&]<std::size_t N>(const std::array<std::size_t, N>& extents, const std::string& name,
                                            const std::shared_ptr<process_group>& who, unsigned threads) {
    runtime rt(memory(st.core()->staging_bytes() + 2_MiB));
    ooc_array<double, N> a{rt, st, name, create, extents, {.block = 4_KiB, .replace = true, .group = who}};
    const std::size_t row = a.size() / extents[0];
    const auto [first, last] = a.local_rows();
    for (std::size_t e = first * row; e < last * row; ++e) a.data()[e] = std::sin(static_cast<double>(e));
    return sweep(a, 11, relaxation<N>(3), {.fuse = threads, .threads = threads, .mark = false, .piece = 100}).values;
  };
  const auto check = [&]<std::size_t N>(const std::array<std::size_t, N>& extents) {
    const auto alone = residuals(extents, "sweep/alone" + std::to_string(group->rank()), nullptr, 1);
    REQUIRE(alone.size() == 4);
    for (const unsigned threads : {1U, 3U, 8U}) {
      CAPTURE(N, threads);
      REQUIRE(residuals(extents, "sweep/residual", group, threads) == alone);
    }
  };
  check(std::array<std::size_t, 2>{70, 300});
  check(std::array<std::size_t, 3>{40, 15, 20});
}

TEST_CASE("a sweep by ranks has no conflicts where no block holds rows of two parts") {
  const auto group = all_ranks();
  runtime rt(memory(common_store().core()->staging_bytes() + 2_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group, .checking = check_conflicts};
  ooc_array<double, 2> a{rt, common_store(), "sweep/checked", create, {84, 512}, o};  // a row a block
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i) a[i][i] = 1;
  const auto st = stencil({1, 0}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = 0.5 * (in[-1][j] + in[1][j]);
  });
  CHECK_NOTHROW(sweep(a, 7, st, {.fuse = 3}));
  CHECK_NOTHROW(a.close());
}

TEST_CASE("a sweep that one rank cancels ends on all") {
  const auto group = all_ranks();
  runtime rt(memory(common_store().core()->staging_bytes() + 1_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, common_store(), "sweep/cancelled", create, {300, 64}, o};
  sweep_options options{.fuse = 2, .mark = false};
  options.progress = [last = group->rank() + 1 == group->size()](const pass_progress& p) {
    return !last || p.part() < 0.3;
  };
  CHECK_THROWS_WITH(sweep(a, 8, relaxation<2>(8), options), Catch::Contains("cancelled"));
}

TEST_CASE("what a kernel throws on one rank comes out of the sweep on all") {
  const auto group = all_ranks();
  runtime rt(memory(common_store().core()->staging_bytes() + 1_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, common_store(), "sweep/thrown", create, {200, 64}, o};
  const auto st = stencil({1, 1}, [](auto& out, const auto&) {
    if (out.index() == 3) throw std::runtime_error("too hot");
  });
  CHECK_THROWS_WITH(sweep(a, 4, st), Catch::Contains("too hot"));
}

TEST_CASE("what the callback throws on one rank comes out of the sweep on all, and one rank ends it for all") {
  const auto group = all_ranks(std::chrono::seconds(10));
  runtime rt(memory(common_store().core()->staging_bytes() + 1_MiB));
  const array_options<double> o{.block = 4_KiB, .replace = true, .group = group};
  ooc_array<double, 2> a{rt, common_store(), "sweep/told", create, {200, 64}, o};
  const bool last = group->rank() + 1 == group->size();
  const auto halved = stencil({1, 1}, [](auto& out, const auto& in) {
    for (auto j = out.lower(1); j < out.upper(1); ++j) out[j] = in[0][j] / 2;
  });
  const auto full = halved.after(1, [last](std::size_t step) {
    if (last && step == 2) throw std::runtime_error("no room for the picture");
  });
  CHECK_THROWS_WITH(sweep(a, 4, full, {.mark = false}), Catch::Contains("no room for the picture"));
  CHECK(sweep(a, 6, halved.after(2, [last](std::size_t step) { return !last || step < 4; })).steps == 4);
}
