// The wave equation u_tt = c^2 (u_xx + u_yy + u_zz) in a periodic box of n x n x n points, as seismic codes
// compute it: 8th order in space, leapfrog in time,
//
//     u(t+1) = 2 u(t) - u(t-1) + q sum over x, y, z of sum over d of w_d (u(+d) + u(-d)) ,   |d| <= 4.
//
// Two fields, u(t) and u(t-1), twice as much as memory need hold; with --fuse several steps are computed
// in one pass over them.  A standing wave cos(k x) cos(l y) cos(m z) is multiplied by cos(omega t), with
// 2 cos(omega) = 2 + q times what the stencil makes of it: so u is known at each step, to rounding, and
// is checked at all points.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <tuple>
#include <vector>

#include "harness/checksum.hpp"
#include "harness/command_line.hpp"
#include "harness/picture.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

constexpr std::array<double, 5> w = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
constexpr double q = 0.1;  // (c dt / dx)^2; stable below 0.2

using field = ooc::ooc_array<double, 3>;

/// A few standing waves.
class standing_waves {
 public:
  explicit standing_waves(std::size_t n) : n_(n) {
    add(1.0, {1, 2, 1});
    add(0.6, {3, 1, 4});
    add(0.3, {5, 6, 2});
  }
  /// From now on step t is meant; may be negative.
  void set_step(double t) {
    for (wave& v : waves_) v.now = v.amplitude * std::cos(v.omega * t);
  }
  double operator()(std::size_t i, std::size_t j, std::size_t k) const noexcept {
    double u = 0;
    for (const wave& v : waves_) u += v.now * v.along[0][i] * v.along[1][j] * v.along[2][k];
    return u;
  }

 private:
  struct wave {
    double amplitude, omega, now;
    std::array<std::vector<double>, 3> along;
  };
  void add(double amplitude, std::array<unsigned, 3> number) {
    wave v{amplitude, 0, 0, {}};
    double made = 0;  // by the stencil, of the wave
    for (std::size_t a = 0; a < 3; ++a) {
      const double theta = 2 * std::numbers::pi * number[a] / static_cast<double>(n_);
      made += w[0];
      for (std::size_t d = 1; d < w.size(); ++d) made += 2 * w[d] * std::cos(theta * static_cast<double>(d));
      for (std::size_t i = 0; i < n_; ++i) v.along[a].push_back(std::cos(theta * static_cast<double>(i)));
    }
    v.omega = std::acos(1 + q * made / 2);
    waves_.push_back(std::move(v));
  }

  std::size_t n_;
  std::vector<wave> waves_;
};

auto leapfrog() {
  return ooc::stencil({4, 4, 4},
                      [](auto& out, const auto& in) {
                        const auto& [u, former] = in;
                        const auto next = out.template get<0>();
                        for (std::ptrdiff_t j = out.lower(1); j < out.upper(1); ++j) {
                          // Rows d before and after this one, along x and along y.
                          const auto x = [&](std::ptrdiff_t d) { return u[d][j].data(); };
                          const auto y = [&](std::ptrdiff_t d) { return u[0][j + d].data(); };
                          const double *const here = x(0), *const before = former[0][j].data();
                          const double *const x1 = x(-1), *const X1 = x(1), *const y1 = y(-1), *const Y1 = y(1);
                          const double *const x2 = x(-2), *const X2 = x(2), *const y2 = y(-2), *const Y2 = y(2);
                          const double *const x3 = x(-3), *const X3 = x(3), *const y3 = y(-3), *const Y3 = y(3);
                          const double *const x4 = x(-4), *const X4 = x(4), *const y4 = y(-4), *const Y4 = y(4);
                          double* const to = next[j].data();
#pragma omp simd
                          for (std::ptrdiff_t k = out.lower(2); k < out.upper(2); ++k) {
                            const double sum = 3 * w[0] * here[k] +
                                               w[1] * (x1[k] + X1[k] + y1[k] + Y1[k] + here[k - 1] + here[k + 1]) +
                                               w[2] * (x2[k] + X2[k] + y2[k] + Y2[k] + here[k - 2] + here[k + 2]) +
                                               w[3] * (x3[k] + X3[k] + y3[k] + Y3[k] + here[k - 3] + here[k + 3]) +
                                               w[4] * (x4[k] + X4[k] + y4[k] + Y4[k] + here[k - 4] + here[k + 4]);
                            to[k] = 2 * here[k] - before[k] + q * sum;
                          }
                        }
                      })
      .keeps_former()
      .periodic(0)
      .periodic(1)
      .periodic(2);
}

struct options : examples::common_options {
  std::optional<std::uint64_t> fuse;
  std::string picture;
};

int solve(const options& o, const examples::ranks& all) {
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("wave", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  const ooc::array_options<double> options{.group = all.group(), .owner_computes = all.size() > 1};
  field u = files.array<double, 3>(rt, "wave.u", {n, n, n}, options);
  field former = files.array<double, 3>(rt, "wave.former", {n, n, n}, options);
  const auto [first, last] = u.local_rows();
  standing_waves exact(n);
  r.phase("create", [&] {
    const auto start = [&](field& f, double step) {
      exact.set_step(step);
      f.overwrite(f.local_box());
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t k = 0; k < n; ++k) f[i][j][k] = exact(i, j, k);
    };
    start(u, 0);
    start(former, -1);
    u.sync();
    former.sync();
  });
  r.phase("compute", [&] {
    const auto done = ooc::sweep(std::tie(u, former), o.iterations, leapfrog(), {.fuse = o.fuse.value_or(1)});
    std::printf("%zu steps in %zu passes\n", done.steps, done.passes);
    r.set("passes", std::uint64_t{done.passes});
  });
  const double error = r.phase("check", [&] {
    exact.set_step(static_cast<double>(o.iterations));
    double worst = 0, sum = 0;
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const double* const row = &std::as_const(u)[i][j][0];
        for (std::size_t k = 0; k < n; ++k) worst = std::max(worst, std::abs(row[k] - exact(i, j, k)));
        sum += examples::row_checksum(i * n + j, row, n);
      }
    r.set("checksum", all.sum(sum));
    return all.max(worst);
  });
  if (!o.picture.empty() && all.leads()) jacobi::write_picture(o.picture, std::as_const(u)[n / 2], n);
  const double steps = static_cast<double>(o.iterations);
  const double tolerance = 1e-14 * (steps + 10) * (steps + 10);  // errors of a leapfrog grow with t^2
  r.set("n", std::uint64_t{n});
  r.set("iterations", o.iterations);
  r.set("error", error);
  std::printf("n = %zu, largest error %.3e (rounding allows %.3e)\n", n, error, tolerance);
  return r.finish(error <= tolerance);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("wave", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    options o;
    o.size = 96;
    o.iterations = 16;
    examples::command_line c("wave", "Waves in a periodic box of n x n x n points, 8th order in space.");
    c.count("size", o.size, 16, 1 << 14, "n, points on a side");
    c.count("iterations", o.iterations, 1, 1'000'000, "steps in time");
    std::string fuse;
    c.text("fuse", fuse, "compute so many steps in one pass over the fields; 0: as many as fit");
    c.text("picture", o.picture, "write the plane in the middle at the end as a PNG");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (!fuse.empty()) o.fuse = examples::parse_quantity("fuse", fuse, false);
    if (o.vm != "none" || !o.creates() || !o.computes())
      throw examples::bad_option("wave has no rivals and no stages: leave out --vm and --stage");
    return solve(o, all);
  });
}
