// Factorisations of matrices larger than memory, and solutions of linear systems by them.
//
//     ooc::cholesky(a);                              // a = Uᴴ U; U is the upper triangle of a afterwards
//
//     ooc::transpose(a, f);                          // LU and QR: the columns of the matrix are the rows of an array
//     std::vector<std::size_t> pivots(n);
//     ooc::lu(f, std::span(pivots));                 // with partial pivoting
//     ooc::solve_lu(f, std::span(pivots), std::span(x));    // x: right-hand sides before, solutions afterwards
//
// Elements are float, double, std::complex<float> or std::complex<double>.  The matrix that is factorised has the rows
// of the array as its columns, so that each column is read as it lies in the file; that is the order of LAPACK, and a
// Hermitian matrix is its own transposed but for conjugation.  `ooc::transpose` turns others.  Vectors are rows as
// well: those of an array, or in memory one after the other.
//
// *Memory.*  Columns are in memory in panels as wide as the budget has room for.  The factorised columns to the left of
// a panel are read for it once.  The least memory is that of 24 columns, 8 of them a panel.  docs/algorithms.md has the
// bytes.  Blocks of the arrays are not used: bytes move past them.  Panels are computed by Eigen; factors agree with
// LAPACK's within rounding, depend on the memory as sums do, and on threads not at all.
//
// *Ranks.*  Where the array that is written is shared by ranks, the call is collective: each has columns, or right-hand
// sides, in its memory, all read every strip once together, and all take as much memory as the one with the least has.
// Arrays that are only read may be of the same group, or opened by each rank for itself.  Pivots and tau are the same
// on all ranks afterwards.  Right-hand sides in memory are the same on all ranks before, and solutions afterwards,
// which each computes; in an array each rank has those of its rows.  Factors are those of one process within rounding.
//
// *Errors.*  On ranks all throw what one of them throws.  Throws usage_error: errc::singular for a matrix that is not
// positive definite (cholesky), or for a zero on the diagonal (solve_...; lu() and qr() factorise singular matrices);
// errc::invalid_request for shapes that do not fit together, or an array that other processes write to; errc::busy
// while a region of what is written is pinned; errc::budget_too_small; io_error.  From the first write on, an error, a
// cancellation or a death leaves what is written neither old nor new, and marked (pass.hpp); vectors in memory are then
// undefined.
//
// Threads: no other thread may use the arrays meanwhile.  On return what was written is acknowledged, and with
// options.mark durable; its blocks have left memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "oocarray/detail/factor_kernels.hpp"
#include "oocarray/error.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {
namespace detail {

template <class T, class Layout>
array_core& factor_core(const ooc_array<T, 2, Layout>& a) {
  // The call may change which of its blocks are in memory, not the array itself.
  return const_cast<array_core&>(a.core());
}

template <class T, class Layout>
void require_square(const ooc_array<T, 2, Layout>& a, const char* what) {
  if (a.extent(0) != a.extent(1))
    throw usage_error(errc::invalid_request, std::string(what) + " of '" + a.path() + "': it is " +
                                                 std::to_string(a.extent(0)) + " by " + std::to_string(a.extent(1)) +
                                                 ", and a matrix that is square is needed");
}

/// One number for each column that is factorised.
template <class T, class Layout, class Number>
void require_numbers(const ooc_array<T, 2, Layout>& a, std::span<Number> numbers, const char* what) {
  const std::size_t columns = std::min(a.extent(0), a.extent(1));
  if (numbers.size() != columns)
    throw usage_error(errc::invalid_request, std::string(what) + " of '" + a.path() + "': " +
                                                 std::to_string(numbers.size()) + " numbers were given beside it; " +
                                                 "give as many as columns are factorised, " + std::to_string(columns));
}

template <class T, class A, class B>
factor_vectors vectors_of(const ooc_array<T, 2, A>&, ooc_array<T, 2, B>& x) {
  return {&factor_core(x), nullptr, x.extent(0), x.extent(1)};
}
template <class T, class A>
factor_vectors vectors_of(const ooc_array<T, 2, A>& f, std::span<T> x) {
  const std::size_t length = f.extent(1), count = length == 0 ? 0 : x.size() / length;
  if (count * length != x.size())
    throw usage_error(errc::invalid_request, "vectors for '" + f.path() + "': " + std::to_string(x.size()) +
                                                 " elements are no vectors of " + std::to_string(length) + " elements");
  return {nullptr, reinterpret_cast<std::byte*>(x.data()), count, length};
}

/// An array of them, or a span of T.
template <class V, class T>
concept vectors_in = requires(const ooc_array<T, 2>& f, V& v) {
  vectors_of(f, v);
};

}  // namespace detail

/// a = Uᴴ U for a Hermitian, positive definite a, of which the diagonal and what is above are read.  U takes their
/// place in `u`.  In place, the elements below the diagonal stay as they are; those of another array may become zero.
/// `a` stays as it is.
template <detail::multiplied_element T, class A, class U>
factor_statistics cholesky(const ooc_array<T, 2, A>& a, ooc_array<T, 2, U>& u, const factor_options& options = {}) {
  detail::require_square(a, "Cholesky factorisation");
  detail::cholesky_kernel<T> kernel;
  return detail::run_factorisation("Cholesky factorisation", detail::factor_core(a), detail::factor_core(u), kernel,
                                   options);
}
/// The same, in place.
template <detail::multiplied_element T, class A>
factor_statistics cholesky(ooc_array<T, 2, A>& a, const factor_options& options = {}) {
  return cholesky(a, a, options);
}

/// Factorises the matrix B whose columns are the rows of `f`, in place: P B = L U with partial pivoting.  Row j of `f`
/// has column j of U up to the diagonal, then column j of L without its 1.  Step k exchanges row k of B with row
/// pivots[k] in the columns from k on: L is not exchanged afterwards, as in LINPACK, and the solution does it in the
/// same order.  One pivot for each of the first min(rows, columns) columns.  The determinant is the product of the
/// diagonal, negated once for each pivots[k] != k.
template <detail::multiplied_element T, class A>
factor_statistics lu(ooc_array<T, 2, A>& f, std::type_identity_t<std::span<std::size_t>> pivots,
                     const factor_options& options = {}) {
  detail::require_numbers(f, pivots, "LU factorisation");
  detail::lu_kernel<T> kernel(pivots);
  return detail::run_factorisation("LU factorisation", detail::factor_core(f), detail::factor_core(f), kernel, options);
}

/// Factorises the matrix B whose columns are the rows of `f`, in place: B = Q R by Householder's reflectors.  Row j of
/// `f` has column j of R up to the diagonal, then reflector j without its first element, 1; Q is the product of I -
/// tau[j] v vᴴ, j from 0 on.  One tau for each of the first min(rows, columns) columns.  A matrix with many times more
/// rows than columns is better done by bands of rows (TSQR), as the Python package does.
template <detail::multiplied_element T, class A>
factor_statistics qr(ooc_array<T, 2, A>& f, std::type_identity_t<std::span<T>> tau,
                     const factor_options& options = {}) {
  detail::require_numbers(f, tau, "QR factorisation");
  detail::qr_kernel<T> kernel(tau);
  return detail::run_factorisation("QR factorisation", detail::factor_core(f), detail::factor_core(f), kernel, options);
}

/// a x = b for the a whose U is in `u`.  `x`: a std::span<T>, or an array; vectors b before, solutions afterwards.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics solve_cholesky(const ooc_array<T, 2, A>& u, X&& x, const factor_options& options = {}) {
  detail::require_square(u, "solution");
  detail::cholesky_kernel<T> kernel;
  return detail::run_factor_steps("solution", detail::factor_core(u), u.extent(0), kernel, detail::vectors_of(u, x),
                                  {detail::factor_step::forward, detail::factor_step::back}, options);
}

/// B x = b for the B whose factors are in `f`; the same.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics solve_lu(const ooc_array<T, 2, A>& f, std::type_identity_t<std::span<const std::size_t>> pivots,
                           X&& x, const factor_options& options = {}) {
  detail::require_square(f, "solution");
  detail::require_numbers(f, pivots, "solution");
  for (std::size_t k = 0; k < pivots.size(); ++k)
    if (pivots[k] < k || pivots[k] >= f.extent(0))
      throw usage_error(errc::invalid_request, "solution by '" + f.path() + "': pivot " + std::to_string(k) + " is " +
                                                   std::to_string(pivots[k]) + ", and not that of lu(): " +
                                                   std::to_string(k) + " to " + std::to_string(f.extent(0) - 1));
  detail::lu_kernel<T> kernel({const_cast<std::size_t*>(pivots.data()), pivots.size()});
  return detail::run_factor_steps("solution", detail::factor_core(f), f.extent(0), kernel, detail::vectors_of(f, x),
                                  {detail::factor_step::forward, detail::factor_step::back}, options);
}

/// The x with the least |B x - b| for the B whose factors are in `f`, by its first `columns` columns alone; in the
/// first elements of each vector, one for each of these.  What follows there is of Qᴴ b, and its norm is |B x - b|.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics solve_qr(const ooc_array<T, 2, A>& f, std::type_identity_t<std::span<const T>> tau,
                           std::size_t columns, X&& x, const factor_options& options = {}) {
  detail::require_numbers(f, tau, "solution");
  if (columns > tau.size())
    throw usage_error(errc::invalid_request, "solution by '" + f.path() + "': " + std::to_string(columns) +
                                                 " of its columns are to be used, and " + std::to_string(tau.size()) +
                                                 " are factorised");
  detail::qr_kernel<T> kernel({const_cast<T*>(tau.data()), tau.size()});
  return detail::run_factor_steps("solution", detail::factor_core(f), columns, kernel, detail::vectors_of(f, x),
                                  {detail::factor_step::forward, detail::factor_step::back}, options);
}
/// The same by all columns, of which B must have no more than rows.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics solve_qr(const ooc_array<T, 2, A>& f, std::type_identity_t<std::span<const T>> tau, X&& x,
                           const factor_options& options = {}) {
  if (f.extent(0) > f.extent(1))
    throw usage_error(errc::invalid_request,
                      "solution of '" + f.path() + "': the matrix has " + std::to_string(f.extent(0)) +
                          " columns and " + std::to_string(f.extent(1)) +
                          " rows: with more columns than rows there is no single solution; name the columns to use");
  return solve_qr(f, tau, f.extent(0), x, options);
}

/// Qᴴ x for each vector x, which has as many elements as Q has rows.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics multiply_q_adjoint(const ooc_array<T, 2, A>& f, std::type_identity_t<std::span<const T>> tau, X&& x,
                                     const factor_options& options = {}) {
  detail::require_numbers(f, tau, "product with the adjoint of Q");
  detail::qr_kernel<T> kernel({const_cast<T*>(tau.data()), tau.size()});
  return detail::run_factor_steps("product with the adjoint of Q", detail::factor_core(f), tau.size(), kernel,
                                  detail::vectors_of(f, x), {detail::factor_step::forward}, options);
}

/// Q x, the same.  Of the columns of the identity matrix that is Q.
template <detail::multiplied_element T, class A, detail::vectors_in<T> X>
factor_statistics multiply_q(const ooc_array<T, 2, A>& f, std::type_identity_t<std::span<const T>> tau, X&& x,
                             const factor_options& options = {}) {
  detail::require_numbers(f, tau, "product with Q");
  detail::qr_kernel<T> kernel({const_cast<T*>(tau.data()), tau.size()});
  return detail::run_factor_steps("product with Q", detail::factor_core(f), tau.size(), kernel,
                                  detail::vectors_of(f, x), {detail::factor_step::orthogonal}, options);
}

}  // namespace ooc
