// Laplace's equation on an n x n grid, red-black Gauss-Seidel.  The points are coloured as a chessboard,
// and an iteration replaces first the red ones, then the black ones, by the mean of their neighbours:
//
//     u(i, j) = 1/4 (u(i-1, j) + u(i+1, j) + u(i, j-1) + u(i, j+1)) .
//
// The neighbours of a colour have the other one, so that each half of an iteration is a step of a stencil,
// and with --fuse several iterations are computed in one pass over the grid.
//
// The grid begins as a solution and an error, u = i j / m^2 + sin(pi i / m) sin(pi j / m) with m = n - 1.  The
// stencil multiplies the error by rho = cos(pi / m), so after k iterations it is rho^(2k-1) of what it was at red
// points and rho^2k at black ones, and each point can be checked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/checksum.hpp"
#include "harness/command_line.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

bool is_red(std::size_t i, std::size_t j) { return (i + j) % 2 == 0; }

/// The grid after k iterations.
class known_grid {
 public:
  known_grid(std::size_t n, std::uint64_t k) : m_(static_cast<double>(n - 1)) {
    for (std::size_t i = 0; i < n; ++i) sine_.push_back(std::sin(std::numbers::pi * static_cast<double>(i) / m_));
    const double rho = std::cos(std::numbers::pi / m_);
    if (k != 0) red_ = std::pow(rho, 2 * static_cast<double>(k) - 1);
    black_ = std::pow(rho, 2 * static_cast<double>(k));
  }
  double operator()(std::size_t i, std::size_t j) const noexcept {
    return static_cast<double>(i) * static_cast<double>(j) / (m_ * m_) +
           (is_red(i, j) ? red_ : black_) * sine_[i] * sine_[j];
  }

 private:
  double m_;
  double red_ = 1, black_ = 1;
  std::vector<double> sine_;
};

/// Odd steps replace red points, even ones black points.
auto half_iteration() {
  return ooc::stencil({1, 1}, [](auto& out, const auto& in) {
    const bool reds = out.step() % 2 == 1;
    for (auto j = out.lower(1); j < out.upper(1); ++j)
      out[j] = is_red(out.index(), static_cast<std::size_t>(j)) == reds
                   ? 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1])
                   : in[0][j];
  });
}

int solve(const examples::common_options& o, std::uint64_t fuse, const examples::ranks& all) {
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("red_black", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  const ooc::array_options<double> options{.group = all.group(), .owner_computes = all.size() > 1};
  auto u = files.array<double, 2>(rt, "red_black.u", {n, n}, options);
  const auto [first, last] = u.local_rows();
  r.phase("create", [&] {
    const known_grid start(n, 0);
    u.overwrite(u.local_box());
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < n; ++j) u[i][j] = start(i, j);
    u.sync();
  });

  r.phase("compute", [&] {
    const auto done = ooc::sweep(u, 2 * o.iterations, half_iteration(), {.fuse = 2 * fuse});
    std::printf("%zu iterations in %zu passes\n", done.steps / 2, done.passes);
  });

  const double error = r.phase("check", [&] {
    const known_grid known(n, o.iterations);
    double worst = 0, sum = 0;
    for (std::size_t i = first; i < last; ++i) {
      const double* const row = &std::as_const(u)[i][0];
      for (std::size_t j = 0; j < n; ++j) worst = std::max(worst, std::abs(row[j] - known(i, j)));
      sum += examples::row_checksum(i, row, n);
    }
    r.set("checksum", all.sum(sum));
    return all.max(worst);
  });
  const double tolerance = 1e-15 * static_cast<double>(o.iterations + 10);
  r.set("n", std::uint64_t{n});
  r.set("iterations", o.iterations);
  r.set("error", error);
  std::printf("n = %zu, largest error %.3e (rounding allows %.3e)\n", n, error, tolerance);
  return r.finish(error <= tolerance);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("red_black", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    examples::common_options o;
    o.size = 2000;
    o.iterations = 16;
    examples::command_line c("red_black", "Laplace's equation on an n x n grid, red-black Gauss-Seidel.");
    c.count("size", o.size, 3, std::uint64_t{1} << 24, "n, points on a side");
    c.count("iterations", o.iterations, 1, 1'000'000, "of both colours");
    std::uint64_t fuse = 0;
    c.count("fuse", fuse, 0, 1000, "compute so many iterations in one pass over the grid; 0: as many as fit");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (o.vm != "none" || !o.creates() || !o.computes())
      throw examples::bad_option("red_black has no rivals and no stages: leave out --vm and --stage");
    return solve(o, fuse, all);
  });
}
