// Random sweeps, each repeated step by step on plain vectors.
//
// The value of an element after a step is the same expression in both, so results are compared bit by bit.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/algorithm/sweep.hpp"
#include "support/random_seed.hpp"
#include "support/test_arrays.hpp"

namespace ooc::testing {

template <std::size_t N>
struct random_sweep {
  std::array<std::size_t, N> extents{};
  std::array<std::size_t, N> radius{};
  std::array<boundary, N> boundaries{};
  std::size_t steps = 0;
  std::size_t every = 0;
  bool edges = false;
  bool edges_in_parts = false;
  bool coefficient = false;
  sweep_options options;

  explicit random_sweep(std::mt19937_64& g) {
    std::size_t left = N == 1 ? 300 : 2000;
    for (std::size_t k = 0; k < N; ++k) {
      extents[k] = between(g, 1, std::min<std::size_t>(left, N == 1 ? 300 : k == 0 ? 50 : 30));
      left = std::max<std::size_t>(left / extents[k], 1);
      radius[k] = between(g, 0, 3);
      boundaries[k] = between(g, 0, 2) == 0 ? boundary::periodic : boundary::fixed;
    }
    steps = between(g, 0, 14);
    every = between(g, 0, 2) == 0 ? between(g, 1, 6) : 0;
    edges = between(g, 0, 2) == 0;
    coefficient = between(g, 0, 2) == 0;
    options.fuse = between(g, 0, 7);
    options.threads = static_cast<unsigned>(between(g, 1, 8));
    options.group = between(g, 0, 5);
    options.piece = between(g, 0, 1) * between(g, 1, 60);
    options.mark = between(g, 0, 3) == 0;
    options.width = between(g, 0, 1) * between(g, 1, 12);
    edges_in_parts = between(g, 0, 1);
  }

  std::string describe() const {
    std::ostringstream s;
    s << "extents";
    for (auto e : extents) s << ' ' << e;
    s << ", radius";
    for (auto r : radius) s << ' ' << r;
    s << ", periodic";
    for (auto b : boundaries) s << ' ' << (b == boundary::periodic);
    s << ", steps " << steps << ", every " << every << ", edges " << edges << ", coefficient " << coefficient
      << ", fuse " << options.fuse << ", threads " << options.threads << ", group " << options.group << ", piece "
      << options.piece << ", mark " << options.mark << ", width " << options.width << ", edges in parts "
      << edges_in_parts;
    return s.str();
  }

  std::size_t size() const {
    std::size_t n = 1;
    for (auto e : extents) n *= e;
    return n;
  }
};

/// The element after the step, from at(k, d): its neighbour d places away in dimension k before it.
template <std::size_t N, class At>
double next_value(const std::array<std::size_t, N>& radius, At at) {
  double v = 0.4 * at(0, 0);
  for (std::size_t k = 0; k < N; ++k)
    for (std::ptrdiff_t d = 1; d <= static_cast<std::ptrdiff_t>(radius[k]); ++d)
      v += 0.1 / static_cast<double>(d + static_cast<std::ptrdiff_t>(k)) * at(k, d) +
           0.07 / static_cast<double>(d) * at(k, -d);
  return v;
}

/// A boundary function's writes into a slab, and where: any elements, at the ends and between them.  n: which
/// of the slab's elements, in row-major order.
inline bool writes_edge(std::size_t slab, std::size_t step, std::size_t n) {
  return ((slab * 131 + step * 31 + n) * 0x9e3779b97f4a7c15u >> 40) % 4 == 0;
}
inline double edge_value(std::size_t slab, std::size_t step, std::size_t n) {
  return static_cast<double>(slab + 3 * n) * 0.01 + static_cast<double>(step);
}

/// The boundary function of these, for the first field.
template <std::size_t N>
auto edge_function() {
  return [](auto& out, const auto&) {
    const auto write = [&](double& to, std::size_t n) {
      if (writes_edge(out.index(), out.step(), n)) to = edge_value(out.index(), out.step(), n);
    };
    const auto slab = [&]() -> decltype(auto) { return out.template get<0>(); };
    if constexpr (N == 1)
      write(slab(), 0);
    else if constexpr (N == 2)
      for (auto j = out.lower(1); j < out.upper(1); ++j) write(slab()[j], static_cast<std::size_t>(j));
    else
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto l = out.lower(2); l < out.upper(2); ++l)
          write(slab()[j][l], static_cast<std::size_t>(j) * out.extent(2) + static_cast<std::size_t>(l));
  };
}

/// The stencil with the boundaries, edges and coefficient that the sweep has, handed to `use`.
template <std::size_t N, class Stencil, class Coefficient, class Use>
void with_rest(Stencil base, const random_sweep<N>& s, const Coefficient* c, Use use) {
  base.boundaries = s.boundaries;
  auto edged = base.edges(edge_function<N>());
  edged.completes_parts = s.edges_in_parts;
  if (s.edges && s.coefficient)
    use(edged.with(*c));
  else if (s.edges)
    use(edged);
  else if (s.coefficient)
    use(base.with(*c));
  else
    use(base);
}

struct swept_in_memory {
  std::vector<double> elements;
  std::vector<double> sums;  ///< of the steps that are reported
};

template <std::size_t N>
swept_in_memory step_by_step(const random_sweep<N>& s, std::vector<double> a, const std::vector<double>& c) {
  swept_in_memory result;
  std::array<std::size_t, N> stride{};
  std::size_t n = 1;
  for (std::size_t k = N; k-- > 0;) {
    stride[k] = n;
    n *= s.extents[k];
  }
  for (std::size_t step = 1; step <= s.steps; ++step) {
    std::vector<double> b = a;
    double sum = 0;
    for (std::size_t e = 0; e < n; ++e) {
      std::array<std::size_t, N> i{};
      bool inside = true;
      for (std::size_t k = 0; k < N; ++k) {
        i[k] = e / stride[k] % s.extents[k];
        inside = inside &&
                 (s.boundaries[k] == boundary::periodic || (i[k] >= s.radius[k] && i[k] + s.radius[k] < s.extents[k]));
      }
      const auto neighbour = [&](const std::vector<double>& x, std::size_t k, std::ptrdiff_t d) {
        const auto extent = static_cast<std::ptrdiff_t>(s.extents[k]);
        const std::ptrdiff_t j = ((static_cast<std::ptrdiff_t>(i[k]) + d) % extent + extent) % extent;
        return x[e - i[k] * stride[k] + static_cast<std::size_t>(j) * stride[k]];
      };
      if (inside) {
        b[e] = next_value<N>(s.radius, [&](std::size_t k, std::ptrdiff_t d) {
          return neighbour(a, k, d) + (s.coefficient ? neighbour(c, k, d) : 0.0);
        });
        sum += static_cast<double>(static_cast<std::int64_t>(b[e] * 1024));
      }
      const std::size_t in_slab = e % stride[0];
      if (s.edges && writes_edge(i[0], step, in_slab)) b[e] = edge_value(i[0], step, in_slab);
    }
    a.swap(b);
    const bool reported = step == s.steps || (s.every != 0 && step % s.every == 0);
    if (reported) result.sums.push_back(sum);
  }
  result.elements = std::move(a);
  return result;
}

/// The stencil of the sweep, handed to `use`.
template <std::size_t N, class Coefficient, class Use>
void with_stencil(const random_sweep<N>& s, const Coefficient* c, Use use) {
  const auto kernel = [radius = s.radius](auto& out, const auto& in, const auto&... more) {
    double sum = 0;
    const auto compute = [&](double& to, auto at) {
      to = next_value<N>(radius, [&](std::size_t k, std::ptrdiff_t d) {
        if constexpr (sizeof...(more) == 0)
          return at(in, k, d) + 0.0;
        else
          return at(in, k, d) + at(more..., k, d);
      });
      sum += static_cast<double>(static_cast<std::int64_t>(to * 1024));
    };
    if constexpr (N == 1)
      compute(out.value(), [](const auto& x, std::size_t, std::ptrdiff_t d) { return x[d]; });
    else if constexpr (N == 2)
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        compute(out[j], [j](const auto& x, std::size_t k, std::ptrdiff_t d) { return k == 0 ? x[d][j] : x[0][j + d]; });
    else
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto l = out.lower(2); l < out.upper(2); ++l)
          compute(out[j][l], [j, l](const auto& x, std::size_t k, std::ptrdiff_t d) {
            return k == 0 ? x[d][j][l] : k == 1 ? x[0][j + d][l] : x[0][j][l + d];
          });
    return sum;
  };
  std::size_t radius[N];
  std::copy(s.radius.begin(), s.radius.end(), radius);
  with_rest(ooc::stencil(radius, kernel)
                .reduce(0.0, [](double x, double y) { return x + y; })
                .after(s.every, [](std::size_t, double) {}),
            s, c, use);
}

/// Two fields on plain vectors: u, and u as it was a step before.
struct two_levels {
  std::array<std::size_t, 3> extents{1, 1, 1}, radius{};
  std::array<bool, 3> periodic{};
  std::size_t dimensions;
  bool edges;
  std::size_t steps = 0;        ///< done
  std::vector<double> u, v, c;  ///< c: the coefficient; empty: none

  template <std::size_t N>
  explicit two_levels(const random_sweep<N>& s) : dimensions(N), edges(s.edges) {
    for (std::size_t k = 0; k < N; ++k) {
      extents[k] = s.extents[k];
      radius[k] = s.radius[k];
      periodic[k] = s.boundaries[k] == boundary::periodic;
    }
  }

  void step() {
    ++steps;
    std::vector<double> next = u;
    std::array<std::size_t, 3> at{};
    for (std::size_t e = 0; e < u.size(); ++e) {
      at = {e / (extents[1] * extents[2]), e / extents[2] % extents[1], e % extents[2]};
      bool inside = true;
      double sum = 0;
      for (std::size_t k = 0; k < dimensions; ++k)
        inside = inside && (periodic[k] || (at[k] >= radius[k] && at[k] + radius[k] < extents[k]));
      for (std::size_t k = 0; inside && k < dimensions; ++k)
        for (const std::size_t there :
             {(at[k] + (radius[k] + 1) * extents[k] - radius[k]) % extents[k], (at[k] + radius[k]) % extents[k]}) {
          auto other = at;
          other[k] = there;
          const std::size_t n = (other[0] * extents[1] + other[1]) * extents[2] + other[2];
          sum += c.empty() ? u[n] : u[n] * c[n];
        }
      if (inside) next[e] = 2 * u[e] - v[e] + 0.01 * sum;
      const std::size_t in_slab = e % (extents[1] * extents[2]);
      if (edges && writes_edge(at[0], steps, in_slab)) next[e] = edge_value(at[0], steps, in_slab);
    }
    v = std::exchange(u, next);
  }
};

/// The result of two_levels.
template <std::size_t N>
auto leapfrog(const std::array<std::size_t, N>& radius) {
  std::array<std::ptrdiff_t, N> r{};
  std::copy(radius.begin(), radius.end(), r.begin());
  const std::size_t none[N]{};
  auto s = stencil(none, [r](auto& out, const auto& in, const auto&... c) {
    const auto& x = std::get<0>(in);
    const auto& y = std::get<1>(in);
    if constexpr (N == 1) {
      const auto at = [&](std::ptrdiff_t d) { return (x[d] * ... * c[d]); };
      const double sum = 0 + at(-r[0]) + at(r[0]);
      out.template get<0>() = 2 * x[0] - y[0] + 0.01 * sum;
    } else {
      const auto at = [&](std::ptrdiff_t d, std::ptrdiff_t j, std::ptrdiff_t l) {
        return (x[d][j][l] * ... * c[d][j][l]);
      };
      const auto next = out.template get<0>();
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto l = out.lower(2); l < out.upper(2); ++l) {
          const double sum = 0 + at(-r[0], j, l) + at(r[0], j, l) + at(0, j - r[1], l) + at(0, j + r[1], l) +
                             at(0, j, l - r[2]) + at(0, j, l + r[2]);
          next[j][l] = 2 * x[0][j][l] - y[0][j][l] + 0.01 * sum;
        }
    }
  });
  s.radius = radius;
  return s.keeps_former();
}

/// The mean of the neighbours, and the sum of squares of the changes, which is rounded, after every m steps.
template <std::size_t N>
auto relaxation(std::size_t m) {
  std::array<std::size_t, N> ones{};
  ones.fill(1);
  const std::size_t none[N]{};
  auto s = stencil(none, [](auto& out, const auto& in) {
    double sum = 0;
    const auto set = [&](double& to, double v, double before) {
      to = v;
      sum += (v - before) * (v - before);
    };
    if constexpr (N == 1)
      set(out.value(), 0.5 * (in[-1] + in[1]), in[0]);
    else if constexpr (N == 2)
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        set(out[j], 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]), in[0][j]);
    else
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto l = out.lower(2); l < out.upper(2); ++l)
          set(out[j][l],
              (in[-1][j][l] + in[1][j][l] + in[0][j - 1][l] + in[0][j + 1][l] + in[0][j][l - 1] + in[0][j][l + 1]) / 6,
              in[0][j][l]);
    return sum;
  });
  s.radius = ones;
  return s.reduce(0.0, std::plus<>()).after(m, [](std::size_t, double) {});
}

}  // namespace ooc::testing
