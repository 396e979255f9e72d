// The arithmetic of the factorisations, by Eigen: strips of columns, each used as one matrix.
//
// Left-looking, as LAPACK's blocked algorithms: Golub and Van Loan, *Matrix Computations*, 3.2 (LU), 4.2 (Cholesky),
// 5.2 (QR; products of reflectors as I - V T Vᴴ: Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 1989).
//
// Owner: the function that runs the engine.  Threads: as factor_engine.hpp says.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/QR>
#include <cstddef>
#include <span>
#include <utility>

#include "oocarray/detail/factor_engine.hpp"

namespace ooc::detail {

template <multiplied_element T>
class eigen_factors : public factor_kernel {
 public:
  std::size_t element_size() const noexcept override { return sizeof(T); }
  bool threads_by_itself() const noexcept override { return Eigen::nbThreads() > 1; }

 protected:
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  using part = Eigen::Map<matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
  using reference = Eigen::Ref<matrix, 0, Eigen::OuterStride<>>;

  static Eigen::Index index(std::size_t n) { return static_cast<Eigen::Index>(n); }
  /// From matrix row `row` on.
  static part from_row(const matrix_block& b, std::size_t row) {
    const std::size_t above = row - b.row;
    return {reinterpret_cast<T*>(b.data) + above, index(b.rows - above), index(b.columns),
            Eigen::OuterStride<>(index(b.stride))};
  }
  /// The rows `first` to `last` - 1 of the matrix.
  static part rows(const matrix_block& b, std::size_t first, std::size_t last) {
    return {reinterpret_cast<T*>(b.data) + (first - b.row), index(last - first), index(b.columns),
            Eigen::OuterStride<>(index(b.stride))};
  }
  /// The square on the diagonal.
  static part diagonal(const matrix_block& strip) { return rows(strip, strip.column, strip.column + strip.columns); }
  /// How many of the diagonal's elements come before the first zero.
  static std::size_t before_zero(const matrix_block& strip) {
    const part square = diagonal(strip);
    for (Eigen::Index k = 0; k < square.cols(); ++k)
      if (square(k, k) == T(0)) return static_cast<std::size_t>(k);
    return strip.columns;
  }
  static void solve_upper(const matrix_block& strip, const matrix_block& target) {
    part x = rows(target, strip.column, strip.column + strip.columns);
    diagonal(strip).template triangularView<Eigen::Upper>().solveInPlace(x);
    part above = rows(target, target.row, strip.column);
    if (above.rows() != 0) above.noalias() -= rows(strip, target.row, strip.column) * x;
  }
};

/// Of the strip, L is on and below the diagonal.
template <multiplied_element T>
class cholesky_kernel final : public eigen_factors<T> {
  using base = eigen_factors<T>;
  using typename base::matrix, typename base::part;

 public:
  bool below_diagonal_only() const noexcept override { return true; }

  std::size_t factorise(const matrix_block& strip) override {
    part square = this->diagonal(strip);
    matrix l = square.template triangularView<Eigen::Lower>();
    if (!positive(l)) {
      l = square.template triangularView<Eigen::Lower>();
      Eigen::Index most = 0;
      for (; most < l.cols(); ++most) {
        matrix leading = l.topLeftCorner(most + 1, most + 1);
        if (!positive(leading)) break;
      }
      return static_cast<std::size_t>(most);
    }
    square.template triangularView<Eigen::Lower>() = l;
    part below = this->from_row(strip, strip.column + strip.columns);
    if (below.rows() != 0)
      l.template triangularView<Eigen::Lower>().adjoint().template solveInPlace<Eigen::OnTheRight>(below);
    return strip.columns;
  }

  void keep(const matrix_block&) const override {}
  std::span<std::byte> numbers(const matrix_block&) const override { return {}; }

  std::size_t use(factor_step step, const matrix_block& strip) override {
    return step == factor_step::update ? strip.columns : this->before_zero(strip);
  }

  void compute(factor_step step, const matrix_block& strip, const matrix_block& target) const override {
    const std::size_t end = strip.column + strip.columns;
    if (step == factor_step::update) {
      const std::size_t after = target.column + target.columns;
      const auto beside = this->rows(strip, target.column, after);
      part square = this->rows(target, target.column, after), below = this->from_row(target, after);
      square.template triangularView<Eigen::Lower>() -= beside * beside.adjoint();
      if (below.rows() != 0) below.noalias() -= this->from_row(strip, after) * beside.adjoint();
      return;
    }
    // The array holds the transposed of L, and the matrix is its product with its adjoint: so L is conjugated here.
    part x = this->rows(target, strip.column, end), below = this->from_row(target, end);
    const part l = this->from_row(strip, end), square = this->diagonal(strip);
    if (step == factor_step::forward) {
      square.conjugate().template triangularView<Eigen::Lower>().solveInPlace(x);
      if (below.rows() != 0) below.noalias() -= l.conjugate() * x;
    } else {
      if (below.rows() != 0) x.noalias() -= l.transpose() * below;
      square.transpose().template triangularView<Eigen::Upper>().solveInPlace(x);
    }
  }

 private:
  /// Makes `a`, of which only the lower triangle counts, into its factor.
  static bool positive(matrix& a) {
    const Eigen::LLT<Eigen::Ref<matrix>> in_place(a);
    return in_place.info() == Eigen::Success && (a.diagonal().real().array() > 0).all();
  }
};

/// Of the strip, U is on and above the diagonal, and L, whose diagonal is 1, below.  Step k exchanges row k with row
/// pivots[k].  The file holds each column of L as it was at its step; compute() uses a strip whose rows have been
/// exchanged by all steps of the strip.
template <multiplied_element T>
class lu_kernel final : public eigen_factors<T> {
  using base = eigen_factors<T>;
  using typename base::matrix, typename base::part, typename base::reference;

 public:
  explicit lu_kernel(std::span<std::size_t> pivots) : pivots_(pivots) {}
  bool below_diagonal_only() const noexcept override { return false; }

  std::size_t factorise(const matrix_block& strip) override {
    factorise(this->from_row(strip, strip.column), strip.column);
    return strip.columns;
  }

  void keep(const matrix_block& strip) const override {
    part l = this->from_row(strip, strip.column);
    for (std::size_t c = 0; c < strip.columns; ++c)
      for (std::size_t k = strip.columns; k-- > c + 1;) exchange(l, this->index(c), strip.column, k);
  }

  std::span<std::byte> numbers(const matrix_block& strip) const override {
    return std::as_writable_bytes(pivots_.subspan(strip.column, strip.columns));
  }

  std::size_t use(factor_step step, const matrix_block& strip) override {
    if (step == factor_step::back) return this->before_zero(strip);
    part l = this->from_row(strip, strip.column);
    for (std::size_t c = 0; c < strip.columns; ++c)
      for (std::size_t k = c + 1; k < strip.columns; ++k) exchange(l, this->index(c), strip.column, k);
    return strip.columns;
  }

  void compute(factor_step step, const matrix_block& strip, const matrix_block& target) const override {
    if (step == factor_step::back) return this->solve_upper(strip, target);
    part all = this->from_row(target, strip.column);
    exchange_all(all, strip.column, strip.columns);
    eliminate(this->from_row(strip, strip.column), all);
  }

 private:
  /// What step `first` + k does to a column, in a matrix that begins with row `first`.
  void exchange(reference a, Eigen::Index column, std::size_t first, std::size_t k) const {
    std::swap(a(this->index(k), column), a(this->index(pivots_[first + k] - first), column));
  }
  void exchange_all(reference a, std::size_t first, std::size_t steps) const {
    for (Eigen::Index c = 0; c < a.cols(); ++c)
      for (std::size_t k = 0; k < steps; ++k) exchange(a, c, first, k);
  }
  /// The columns right of factorised ones, whose rows have been exchanged.
  static void eliminate(const Eigen::Ref<const matrix, 0, Eigen::OuterStride<>>& left, reference right) {
    const Eigen::Index n = left.cols(), below = left.rows() - n;
    auto top = right.topRows(n);
    left.topRows(n).template triangularView<Eigen::UnitLower>().solveInPlace(top);
    if (below != 0) right.bottomRows(below).noalias() -= left.bottomRows(below) * top;
  }
  /// `a` begins with matrix row `first`.  Halves of the columns: Toledo, *Locality of reference in LU decomposition
  /// with partial pivoting* (SIAM J. Matrix Anal. Appl. 1997).
  void factorise(reference a, std::size_t first) {
    constexpr Eigen::Index few = 8;
    if (a.cols() <= few) return factorise_few(a, first);
    const Eigen::Index half = a.cols() / 2, rest = a.cols() - half;
    const auto h = static_cast<std::size_t>(half);
    factorise(a.leftCols(half), first);
    exchange_all(a.rightCols(rest), first, h);
    eliminate(a.leftCols(half), a.rightCols(rest));
    factorise(a.bottomRightCorner(a.rows() - half, rest), first + h);
    exchange_all(a.bottomLeftCorner(a.rows() - half, half), first + h, static_cast<std::size_t>(rest));
  }
  void factorise_few(reference a, std::size_t first) {
    for (Eigen::Index k = 0; k < a.cols(); ++k) {
      Eigen::Index largest = 0;
      const auto size = a.col(k).tail(a.rows() - k).cwiseAbs().maxCoeff(&largest);
      pivots_[first + static_cast<std::size_t>(k)] = first + static_cast<std::size_t>(k + largest);
      a.row(k).swap(a.row(k + largest));
      const Eigen::Index below = a.rows() - k - 1, right = a.cols() - k - 1;
      if (below == 0 || size == 0) continue;
      a.col(k).tail(below) /= a(k, k);
      if (right != 0) a.bottomRightCorner(below, right).noalias() -= a.col(k).tail(below) * a.row(k).tail(right);
    }
  }

  const std::span<std::size_t> pivots_;
};

/// Of the strip, R is on and above the diagonal, and the reflectors, whose first element is 1, below: Q is the product
/// of I - tau v vᴴ, as LAPACK has it.
template <multiplied_element T>
class qr_kernel final : public eigen_factors<T> {
  using base = eigen_factors<T>;
  using typename base::matrix, typename base::part, typename base::reference;

 public:
  explicit qr_kernel(std::span<T> tau) : tau_(tau) {}
  bool below_diagonal_only() const noexcept override { return false; }

  std::size_t factorise(const matrix_block& strip) override {
    part all = this->from_row(strip, strip.column);
    Eigen::HouseholderQR<reference> in_place(all);
    taus(strip) = in_place.hCoeffs().conjugate();
    return use(factor_step::update, strip);
  }

  void keep(const matrix_block&) const override {}
  std::span<std::byte> numbers(const matrix_block& strip) const override {
    return std::as_writable_bytes(tau_.subspan(strip.column, strip.columns));
  }

  std::size_t use(factor_step step, const matrix_block& strip) override {
    if (step == factor_step::back) return this->before_zero(strip);
    const part all = this->from_row(strip, strip.column);
    const Eigen::Index n = all.cols(), below = all.rows() - n;
    matrix products = matrix(all.topRows(n).template triangularView<Eigen::UnitLower>());
    products = (products.adjoint() * products).eval();
    if (below != 0) products.noalias() += all.bottomRows(below).adjoint() * all.bottomRows(below);
    t_.setZero(n, n);
    for (Eigen::Index k = 0; k < n; ++k) {
      const T tau = taus(strip)(k);
      if (k != 0)
        t_.col(k).head(k) =
            -tau * (t_.topLeftCorner(k, k).template triangularView<Eigen::Upper>() * products.col(k).head(k)).eval();
      t_(k, k) = tau;
    }
    return strip.columns;
  }

  void compute(factor_step step, const matrix_block& strip, const matrix_block& target) const override {
    if (step == factor_step::back) return this->solve_upper(strip, target);
    const part v = this->from_row(strip, strip.column);
    part c = this->from_row(target, strip.column);
    const Eigen::Index n = v.cols(), below = v.rows() - n;
    matrix w = v.topRows(n).template triangularView<Eigen::UnitLower>().adjoint() * c.topRows(n);
    if (below != 0) w.noalias() += v.bottomRows(below).adjoint() * c.bottomRows(below);
    if (step == factor_step::orthogonal)
      w = (t_.template triangularView<Eigen::Upper>() * w).eval();
    else
      w = (t_.template triangularView<Eigen::Upper>().adjoint() * w).eval();
    c.topRows(n) -= v.topRows(n).template triangularView<Eigen::UnitLower>() * w;
    if (below != 0) c.bottomRows(below).noalias() -= v.bottomRows(below) * w;
  }

 private:
  auto taus(const matrix_block& strip) const {
    return Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>(tau_.data() + strip.column, this->index(strip.columns));
  }

  const std::span<T> tau_;
  matrix t_;
};

}  // namespace ooc::detail
