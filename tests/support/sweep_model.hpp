// Random sweeps, each repeated step by step on plain vectors.
//
// The value of an element after a step is the same expression in both, so results are compared bit by bit.
#pragma once

#include <catch2/catch.hpp>
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
    options.threads = static_cast<unsigned>(between(g, 1, 4));
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
    s << ", steps " << steps << ", every " << every << ", edges " << edges << ", coefficient "
      << coefficient << ", fuse " << options.fuse << ", threads " << options.threads << ", group "
      << options.group << ", piece " << options.piece << ", mark " << options.mark << ", width "
      << options.width << ", edges in parts " << edges_in_parts;
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

/// What a boundary function writes into a slab.
inline double edge_value(std::size_t slab, std::size_t step) {
  return static_cast<double>(slab) * 0.01 + static_cast<double>(step);
}

struct swept_in_memory {
  std::vector<double> elements;
  std::vector<double> sums;  ///< of the steps that are reported
};

template <std::size_t N>
swept_in_memory step_by_step(const random_sweep<N>& s, std::vector<double> a,
                             const std::vector<double>& c) {
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
        inside = inside && (s.boundaries[k] == boundary::periodic ||
                            (i[k] >= s.radius[k] && i[k] + s.radius[k] < s.extents[k]));
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
      if (s.edges && e == i[0] * stride[0]) b[e] = edge_value(i[0], step);
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
        compute(out[j], [j](const auto& x, std::size_t k, std::ptrdiff_t d) {
          return k == 0 ? x[d][j] : x[0][j + d];
        });
    else
      for (auto j = out.lower(1); j < out.upper(1); ++j)
        for (auto l = out.lower(2); l < out.upper(2); ++l)
          compute(out[j][l], [j, l](const auto& x, std::size_t k, std::ptrdiff_t d) {
            return k == 0 ? x[d][j][l] : k == 1 ? x[0][j + d][l] : x[0][j][l + d];
          });
    return sum;
  };
  const auto edge = [](auto& out, const auto&) {
    const double v = edge_value(out.index(), out.step());
    if constexpr (N == 1)
      out.value() = v;
    else if (out.lower(1) > 0 || out.upper(1) <= 0)
      return;
    else if constexpr (N == 2)
      out[0] = v;
    else
      out[0][0] = v;
  };
  std::size_t radius[N];
  std::copy(s.radius.begin(), s.radius.end(), radius);
  auto base = ooc::stencil(radius, kernel);
  base.boundaries = s.boundaries;
  const auto sums = base.reduce(0.0, [](double x, double y) { return x + y; });
  const auto told = sums.after(s.every, [](std::size_t, double) {});
  auto finished = told.edges(edge);
  finished.completes_parts = s.edges_in_parts;
  if (s.edges && s.coefficient)
    use(finished.with(*c));
  else if (s.edges)
    use(finished);
  else if (s.coefficient)
    use(told.with(*c));
  else
    use(told);
}

/// Two fields on plain vectors: u, and u as it was a step before.
struct two_levels {
  std::array<std::size_t, 3> extents{1, 1, 1}, radius{};
  std::array<bool, 3> periodic{};
  std::size_t dimensions;
  std::vector<double> u, v;

  template <std::size_t N>
  explicit two_levels(const random_sweep<N>& s) : dimensions(N) {
    for (std::size_t k = 0; k < N; ++k) {
      extents[k] = s.extents[k];
      radius[k] = s.radius[k];
      periodic[k] = s.boundaries[k] == boundary::periodic;
    }
  }

  void step() {
    std::vector<double> next = u;
    std::array<std::size_t, 3> at{};
    for (std::size_t e = 0; e < u.size(); ++e) {
      at = {e / (extents[1] * extents[2]), e / extents[2] % extents[1], e % extents[2]};
      bool inside = true;
      double sum = 0;
      for (std::size_t k = 0; k < dimensions; ++k)
        inside = inside && (periodic[k] || (at[k] >= radius[k] && at[k] + radius[k] < extents[k]));
      if (!inside) continue;
      for (std::size_t k = 0; k < dimensions; ++k)
        for (const std::size_t there :
             {(at[k] + (radius[k] + 1) * extents[k] - radius[k]) % extents[k], (at[k] + radius[k]) % extents[k]}) {
          auto other = at;
          other[k] = there;
          sum += u[(other[0] * extents[1] + other[1]) * extents[2] + other[2]];
        }
      next[e] = 2 * u[e] - v[e] + 0.01 * sum;
    }
    v = std::exchange(u, next);
  }
};

/// What two_levels computes.
template <std::size_t N>
auto leapfrog(const std::array<std::size_t, N>& radius) {
  std::array<std::ptrdiff_t, N> r{};
  std::copy(radius.begin(), radius.end(), r.begin());
  auto s = [&] {
    if constexpr (N == 1)
      return stencil({0}, [r](auto& out, const auto& in) {
        const auto& [x, y] = in;
        const double sum = 0 + x[-r[0]] + x[r[0]];
        out.template get<0>() = 2 * x[0] - y[0] + 0.01 * sum;
      });
    else
      return stencil({0, 0, 0}, [r](auto& out, const auto& in) {
        const auto& [x, y] = in;
        const auto next = out.template get<0>();
        for (auto j = out.lower(1); j < out.upper(1); ++j)
          for (auto l = out.lower(2); l < out.upper(2); ++l) {
            const double sum = 0 + x[-r[0]][j][l] + x[r[0]][j][l] + x[0][j - r[1]][l] + x[0][j + r[1]][l] +
                               x[0][j][l - r[2]] + x[0][j][l + r[2]];
            next[j][l] = 2 * x[0][j][l] - y[0][j][l] + 0.01 * sum;
          }
      });
  }();
  s.radius = radius;
  return s.keeps_former();
}

}  // namespace ooc::testing
