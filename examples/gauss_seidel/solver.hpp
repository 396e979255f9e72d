// Block Gauss-Seidel in groups (Cettei, Ligon, Ross 1998, section 4):
//
//     x_i  <-  A_ii^-1 (b_i - sum_(j != i) A_ij x_j)   =   x_i + A_ii^-1 r_i ,   r_i = b_i - sum_j A_ij x_j
//
// for the block rows i in turn.  `group` block rows at a time are computed from the same x and then
// put into it together: the paper's compute nodes, each with one row of the group.  On ranks, block
// row i is the work of rank i mod ranks, and after each group its ranks send the new values of x to all.
// The result depends on the group, never on how many ranks share the work: every number is computed
// by one rank, from the same numbers in the same order.
//
// The same templates run out of core and on plain memory (block_matrix.hpp).
#pragma once

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "gauss_seidel/system.hpp"
#include "harness/plain_array.hpp"
#include "harness/progress_bar.hpp"
#include "harness/ranks.hpp"

namespace gauss_seidel {

struct partition {
  std::uint64_t m;      ///< blocks in a row and in a column
  std::uint64_t n;      ///< elements in a row and in a column of a block
  std::uint64_t group;  ///< block rows that are updated together
};

/// Who does the work of a block row.
class share_of_rows {
 public:
  share_of_rows(const partition& p, const examples::ranks& all) : m_(p.m), all_(all) {}

  int owner(std::uint64_t i) const noexcept { return static_cast<int>(i % static_cast<std::uint64_t>(all_.size())); }
  bool mine(std::uint64_t i) const noexcept { return owner(i) == all_.rank(); }
  /// Number of rows of this rank.
  std::uint64_t count() const noexcept {
    const auto n = static_cast<std::uint64_t>(all_.size());
    return m_ / n + (static_cast<std::uint64_t>(all_.rank()) < m_ % n);
  }
  /// Where they lie in a file of which a row of blocks has `row` bytes.
  std::vector<examples::byte_range> bytes_of(std::uint64_t row) const {
    std::vector<examples::byte_range> parts;
    for (std::uint64_t i = 0; i < m_; ++i)
      if (mine(i)) parts.push_back({i * row, (i + 1) * row});
    return parts;
  }
  const examples::ranks& ranks() const noexcept { return all_; }

 private:
  std::uint64_t m_;
  const examples::ranks& all_;
};

/// The root mean square of numbers of which each rank has the squared norms of its rows; added in the
/// order of rows, so that it does not depend on the number of ranks.
inline double root_mean_square(std::vector<double>& squares, std::size_t elements, const examples::ranks& all) {
  all.sum(squares);
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0) / static_cast<double>(elements));
}

/// Inverts the diagonal blocks of `a` into the row of blocks `inverses`.
template <class Matrix, class Inverses>
void invert_diagonal(Matrix& a, Inverses& inverses, const partition& p, const share_of_rows& rows,
                     examples::progress_bar& bar) {
  for (std::uint64_t i = 0; i < p.m; ++i) {
    if (!rows.mine(i)) continue;
    auto from = a.block(i, i);
    auto to = inverses.block_to_write(i, 0);
    *to = (*from).inverse();
    bar.step();
  }
}

/// r_i of block row i.
template <class Matrix>
vector row_residual(Matrix& a, const vector& b, const vector& x, const partition& p, std::uint64_t i) {
  const auto n = static_cast<Eigen::Index>(p.n);
  vector r = b.segment(static_cast<Eigen::Index>(i) * n, n);
  for (std::uint64_t j = 0; j < p.m; ++j)
    r.noalias() -= *a.block(j, i) * x.segment(static_cast<Eigen::Index>(j) * n, n);
  return r;
}

/// One iteration.  Returns the root mean square of the r_i, each taken when its row was due.
template <class Matrix, class Inverses>
double sweep(Matrix& a, Inverses& inverses, const vector& b, vector& x, const partition& p, const share_of_rows& rows,
             examples::progress_bar& bar) {
  const auto n = static_cast<Eigen::Index>(p.n);
  vector next = x;
  std::vector<double> squares(p.m);
  for (std::uint64_t first = 0; first < p.m; first += p.group) {
    const std::uint64_t last = std::min(p.m, first + p.group);
    for (std::uint64_t i = first; i < last; ++i) {
      if (!rows.mine(i)) continue;
      const vector r = row_residual(a, b, x, p, i);
      next.segment(static_cast<Eigen::Index>(i) * n, n).noalias() += *inverses.block(i, 0) * r;
      squares[i] = r.squaredNorm();
      bar.step();
    }
    for (std::uint64_t i = first; i < last; ++i)
      rows.ranks().broadcast(std::span(reinterpret_cast<double*>(next.data() + i * p.n), 2 * p.n), rows.owner(i));
    const auto at = static_cast<Eigen::Index>(first) * n;
    const auto length = static_cast<Eigen::Index>(last - first) * n;
    x.segment(at, length) = next.segment(at, length);
  }
  return root_mean_square(squares, static_cast<std::size_t>(x.size()), rows.ranks());
}

/// The root mean square of A x - b: one more pass over A.
template <class Matrix>
double rms_residual(Matrix& a, const vector& b, const vector& x, const partition& p, const share_of_rows& rows,
                    examples::progress_bar& bar) {
  std::vector<double> squares(p.m);
  for (std::uint64_t i = 0; i < p.m; ++i) {
    if (!rows.mine(i)) continue;
    squares[i] = row_residual(a, b, x, p, i).squaredNorm();
    bar.step();
  }
  return root_mean_square(squares, static_cast<std::size_t>(x.size()), rows.ranks());
}

}  // namespace gauss_seidel
