#include "gauss_seidel/system.hpp"

#include <algorithm>
#include <cmath>

namespace gauss_seidel {
namespace {

/// splitmix64's finaliser: every bit of the result depends on every bit of x.
std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double unit(std::uint64_t bits32) noexcept { return static_cast<double>(bits32) * 0x1p-32; }

}  // namespace

vector linear_system::known() const {
  vector x(static_cast<Eigen::Index>(order_));
  for (Eigen::Index k = 0; k < x.size(); ++k)
    x[k] = complex(1.0 + static_cast<double>(k % 7), static_cast<double>(k % 5) - 2.0);
  return x;
}

double linear_system::fill(std::uint64_t first_row, block_map rows) const {
  double largest = 0;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const std::uint64_t r = first_row + static_cast<std::uint64_t>(i);
    const std::uint64_t row_seed = mixed(seed_ + 0x9e3779b97f4a7c15u * (r + 1));
    double moduli = 0;
    for (Eigen::Index c = 0; c < rows.cols(); ++c) {
      const std::uint64_t h = mixed(row_seed + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(c) + 1));
      const complex a(unit(h >> 32), unit(h & 0xffffffffu) - 0.5);
      rows(i, c) = a;
      if (static_cast<std::uint64_t>(c) != r) moduli += std::sqrt(std::norm(a));
    }
    rows(i, static_cast<Eigen::Index>(r)) = diagonal();
    largest = std::max(largest, moduli);
  }
  return largest;
}

}  // namespace gauss_seidel
