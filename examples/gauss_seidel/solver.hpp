// Block Gauss-Seidel in groups (Cettei, Ligon, Ross 1998, section 4):
//
//     x_i  <-  A_ii^-1 (b_i - sum_(j != i) A_ij x_j)   =   x_i + A_ii^-1 r_i ,   r_i = b_i - sum_j A_ij x_j
//
// for the block rows i in turn.  `group` block rows at a time are computed from the same x and then
// put into it together: the paper's compute nodes, each with one row of the group.  The result
// depends on the group, never on how many processes or threads share the work.
//
// The same templates run out of core and on plain memory (block_matrix.hpp).
#pragma once

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "common/progress_bar.hpp"
#include "gauss_seidel/system.hpp"

namespace gauss_seidel {

struct partition {
  std::uint64_t m;      ///< blocks in a row and in a column
  std::uint64_t n;      ///< elements in a row and in a column of a block
  std::uint64_t group;  ///< block rows that are updated together
};

/// Inverts the diagonal blocks of `a` into the row of blocks `inverses`.
template <class Matrix, class Inverses>
void invert_diagonal(Matrix& a, Inverses& inverses, const partition& p, examples::progress_bar& bar) {
  for (std::uint64_t i = 0; i < p.m; ++i) {
    auto from = a.block(i, i);
    auto to = inverses.block_to_write(i, 0);
    *to = (*from).inverse();
    bar.step();
  }
}

/// r_i of block row i.
template <class Matrix>
vector row_residual(Matrix& a, const vector& b, const vector& x, const partition& p,
                    std::uint64_t i) {
  const auto n = static_cast<Eigen::Index>(p.n);
  vector r = b.segment(static_cast<Eigen::Index>(i) * n, n);
  for (std::uint64_t j = 0; j < p.m; ++j)
    r.noalias() -= *a.block(j, i) * x.segment(static_cast<Eigen::Index>(j) * n, n);
  return r;
}

/// One iteration.  Returns the root mean square of the r_i, each taken when its row was due.
template <class Matrix, class Inverses>
double sweep(Matrix& a, Inverses& inverses, const vector& b, vector& x, const partition& p,
             examples::progress_bar& bar) {
  const auto n = static_cast<Eigen::Index>(p.n);
  vector next = x;
  double sum = 0;
  for (std::uint64_t first = 0; first < p.m; first += p.group) {
    const std::uint64_t last = std::min(p.m, first + p.group);
    for (std::uint64_t i = first; i < last; ++i) {
      a.prefetch(0, (i + 1) % p.m);
      const vector r = row_residual(a, b, x, p, i);
      next.segment(static_cast<Eigen::Index>(i) * n, n).noalias() += *inverses.block(i, 0) * r;
      sum += r.squaredNorm();
      bar.step();
    }
    const auto at = static_cast<Eigen::Index>(first) * n;
    const auto length = static_cast<Eigen::Index>(last - first) * n;
    x.segment(at, length) = next.segment(at, length);
  }
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// The root mean square of A x - b: one more pass over A.
template <class Matrix>
double rms_residual(Matrix& a, const vector& b, const vector& x, const partition& p,
                    examples::progress_bar& bar) {
  double sum = 0;
  for (std::uint64_t i = 0; i < p.m; ++i) {
    a.prefetch(0, (i + 1) % p.m);
    sum += row_residual(a, b, x, p, i).squaredNorm();
    bar.step();
  }
  return std::sqrt(sum / static_cast<double>(x.size()));
}

}  // namespace gauss_seidel
