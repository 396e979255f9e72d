// The linear system: dense, complex, strictly diagonally dominant, reproducible, with a known answer.
//
// A is M x M.  Off the diagonal, element (r, c) is a pseudo-random number that depends on the seed,
// r and c alone, with a real part in [0, 1) and an imaginary part in [-1/2, 1/2), so its modulus is
// below sqrt(5)/2; on the diagonal it is 5/4 M.  The answer is chosen, and b = A x.
#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>

namespace gauss_seidel {

using complex = std::complex<double>;
using vector = Eigen::VectorXcd;
/// A block as it lies in memory: rows of the matrix, some way apart.
using block_map = Eigen::Map<Eigen::Matrix<complex, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, Eigen::Unaligned,
                             Eigen::OuterStride<>>;
using const_block_map = Eigen::Map<const Eigen::Matrix<complex, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                                   Eigen::Unaligned, Eigen::OuterStride<>>;

class linear_system {
 public:
  linear_system(std::uint64_t order, std::uint64_t seed) : order_(order), seed_(seed) {}

  std::uint64_t order() const noexcept { return order_; }
  /// The answer.
  vector known() const;
  /// Writes rows first_row, first_row + 1, ... of A.  Returns the largest sum of moduli off the
  /// diagonal in any of them: divided by diagonal(), a bound of what an iteration leaves of the
  /// largest error, by blocks as by elements.
  double fill(std::uint64_t first_row, block_map rows) const;
  double diagonal() const noexcept { return 1.25 * static_cast<double>(order_); }

 private:
  std::uint64_t order_;
  std::uint64_t seed_;
};

}  // namespace gauss_seidel
