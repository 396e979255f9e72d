// The functions of scattering_test.cpp.
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "oocarray/algorithm/elementwise.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "support/memory_store.hpp"

namespace {

constexpr std::size_t n = 100'000, bins = 7;
using number = std::int64_t;

/// A table that the function of one thread writes to.
struct table {
  std::vector<number> counts = std::vector<number>(16);
  number* data() { return counts.data(); }
  bool holds(number each_time, std::size_t first, std::size_t last) const {
    std::vector<number> wanted(16);
    for (std::size_t i = first; i < last; ++i) wanted[i % bins] += each_time;
    return counts == wanted;
  }
};

std::vector<number> indices() {
  std::vector<number> k(n);
  for (std::size_t i = 0; i < n; ++i) k[i] = static_cast<number>(i % bins);
  return k;
}

}  // namespace

std::vector<std::string> lost_updates() {
  std::vector<std::string> lost;
  const auto expect = [&](bool holds, const char* where) {
    if (!holds) lost.emplace_back(where);
  };

  {  // where the compiler knows how many elements there are
    std::vector<number> k = indices();
    table t;
    auto count = [to = t.data()](const number& x) { ++to[x]; };
    ooc::detail::for_each_program<0, decltype(count), const number> program(count);
    std::byte* const p[] = {reinterpret_cast<std::byte*>(k.data())};
    program.run(0, 0, p, n, nullptr);
    expect(t.holds(1, 0, n), "a program that counts");
  }

  const ooc::testing::memory_store nodes(2);
  ooc::runtime rt{{.memory = std::size_t{64} << 20}};
  const ooc::store s = nodes.handle();
  ooc::ooc_array<number, 1> k{rt, s, "k", ooc::create, {n}}, out{rt, s, "out", ooc::create, {n}};
  ooc::ooc_array<double, 1> x{rt, s, "x", ooc::create, {n}};
  const std::vector<number> all = indices();
  std::copy(all.begin(), all.end(), k.begin());
  ooc::fill(x, 1.0);
  const ooc::pass_options alone{.threads = 1, .mark = false};
  {
    static thread_local std::vector<number> h;
    h.assign(16, 0);
    ooc::for_each(
        std::as_const(k), [](const number& i) { ++h[static_cast<std::size_t>(i)]; }, alone);
    table t{h};
    expect(t.holds(1, 0, n), "for_each of one array");
  }
  {
    table t;
    ooc::for_each(
        std::tie(x, k), [to = t.data()](const double& v, const number& i) { to[i] += static_cast<number>(v); }, alone);
    expect(t.holds(1, 0, n), "for_each of two arrays");
  }
  {
    table t;
    ooc::transform(
        k, out,
        [to = t.data()](number i) {
          ++to[i];
          return i;
        },
        alone);
    expect(t.holds(1, 0, n), "transform into another array");
    ooc::transform(
        out, out,
        [to = t.data()](number i) {
          ++to[i];
          return i + 1;
        },
        alone);
    expect(t.holds(2, 0, n), "transform in place");
    ooc::transform(
        k, out, out,
        [to = t.data()](number i, number j) {
          ++to[i];
          return j - 1;
        },
        alone);
    expect(t.holds(3, 0, n), "transform of two arrays, one in place");
    expect(std::equal(out.begin(), out.end(), all.begin()), "what the transforms wrote");
  }
  {
    table t;
    ooc::sweep(k, 1,
               ooc::stencil({1},
                            [to = t.data()](auto& o, const auto& in) {
                              ++to[in[0]];
                              o.value() = in[0];
                            }),
               {.threads = 1, .mark = false});
    expect(t.holds(1, 1, n - 1), "the kernel of a line");
  }
  return lost;
}
