// A plate whose temperature is known at every iteration, not only in the limit.
//
// On the n x n grid, with theta = pi / (n - 1), the five-point Laplacian has two kinds of exact
// solutions that separate:
//
//   harmonic   sin(theta j) sinh(kappa i) / sinh(kappa (n - 1)),  cosh kappa = 2 - cos theta:
//              the four neighbours' mean is the value itself, so an iteration changes nothing.
//              It is 0 on three edges and a hot arc on the fourth.
//   mode p, q  sin(p theta i) sin(q theta j): 0 on all edges; an iteration multiplies it by
//              lambda = (cos(p theta) + cos(q theta)) / 2.
//
// A plate that begins as the harmonic part plus modes is, after k iterations, the harmonic part plus
// lambda^k times each mode, to rounding.  For integers the same holds exactly: the plane
// 3 i - 5 j, and the mode p = q = (n - 1) / 3, whose sines are in the ratio 0, 1, 1, 0, -1, -1
// and whose lambda is 1/2; with amplitude 2^K it stays integer for K iterations.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

namespace jacobi {

class heated_plate {
 public:
  using value_type = double;

  heated_plate(std::size_t n, std::uint64_t /*iterations*/) : n_(n) {
    const double theta = std::numbers::pi / static_cast<double>(n - 1);
    const double kappa = 2 * std::asinh(std::sin(theta / 2));
    const double end = kappa * static_cast<double>(n - 1);
    arc_ = sines(1);
    rise_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = kappa * static_cast<double>(i);
      rise_[i] = std::exp(x - end) * std::expm1(-2 * x) / std::expm1(-2 * end);
    }
    add(0.5, 1, 1);
    add(0.35, 3, 5);
    add(0.25, 8, 2);
    set_iteration(0);
  }

  /// The exact plate after k iterations is meant from now on.
  void set_iteration(std::uint64_t k) {
    for (mode& m : modes_) m.now = m.amplitude * std::pow(m.lambda, static_cast<double>(k));
  }

  double operator()(std::size_t i, std::size_t j) const noexcept {
    double u = rise_[i] * arc_[j];
    for (const mode& m : modes_) u += m.now * m.rows[i] * m.columns[j];
    return u;
  }

  /// Rounding: each iteration and the tables may be off by a few units in the last place.
  double tolerance(std::uint64_t iterations) const noexcept { return 4e-15 * static_cast<double>(iterations + 10); }

 private:
  struct mode {
    double amplitude, lambda, now;
    std::vector<double> rows, columns;
  };

  std::vector<double> sines(std::size_t p) const {
    std::vector<double> s(n_);
    const std::size_t period = 2 * (n_ - 1);
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t k = p * i % period;  // the argument stays small: accurate for large n
      s[i] =
          k % (n_ - 1) == 0 ? 0.0 : std::sin(std::numbers::pi * static_cast<double>(k) / static_cast<double>(n_ - 1));
    }
    return s;
  }

  void add(double amplitude, std::size_t p, std::size_t q) {
    if (p >= n_ - 1 || q >= n_ - 1) return;
    const double theta = std::numbers::pi / static_cast<double>(n_ - 1);
    const double lambda = (std::cos(static_cast<double>(p) * theta) + std::cos(static_cast<double>(q) * theta)) / 2;
    modes_.push_back({amplitude, lambda, amplitude, sines(p), sines(q)});
  }

  std::size_t n_;
  std::vector<double> arc_, rise_;
  std::vector<mode> modes_;
};

class integer_plate {
 public:
  using value_type = std::int32_t;
  static constexpr std::uint64_t max_iterations = 24;
  /// The mode vanishes on the far edges where n - 1 is a multiple of 3: the next such n below.
  static constexpr std::uint64_t size_for(std::uint64_t n) { return n - (n - 1) % 3; }

  integer_plate(std::size_t /*n*/, std::uint64_t iterations) : first_(iterations) { set_iteration(0); }
  void set_iteration(std::uint64_t k) { amplitude_ = std::int32_t{1} << (first_ - k); }

  std::int32_t operator()(std::size_t i, std::size_t j) const noexcept {
    static constexpr std::int32_t s[6] = {0, 1, 1, 0, -1, -1};
    return 3 * static_cast<std::int32_t>(i) - 5 * static_cast<std::int32_t>(j) + amplitude_ * s[i % 6] * s[j % 6];
  }
  double tolerance(std::uint64_t) const noexcept { return 0; }

 private:
  std::uint64_t first_;
  std::int32_t amplitude_ = 1;
};

}  // namespace jacobi
