// Products of sparse matrices larger than memory with vectors in memory.
//
// A matrix in *compressed sparse rows* (CSR) is three arrays of one dimension: the elements of row i are values[k], in
// column columns[k], for k from rows[i] to rows[i + 1] - 1.  So `rows` has one element more than the matrix has rows,
// begins with 0, and ends with the number of elements.  SciPy calls them data, indices and indptr.
//
//     const ooc::sparse_matrix a{values, columns, rows};
//     ooc::multiply(a, std::span(x), std::span(y));   // y = A x; k vectors are the columns of x, row-major, and so of y
//
// The elements are read once, in their order, by all threads; the vectors stay in memory, which is the program's own
// and not counted by the budget.  That is what graphs of 10^10 edges and 10^8 nodes need: PageRank, eigenvectors,
// conjugate gradients.  Columns may come in any order, and several times, which adds them up.  Sums are taken
// in an order that depends neither on threads nor on memory.
//
// *Ranks.*  Where `values` is an array of a group the call is collective; `columns` is of the same group, `rows` of it
// or opened by each rank for itself.  Each rank reads its share of the elements.  x is the same on all ranks, and so is
// y afterwards, for which each takes its size once more meanwhile.
//
// *Errors.*  Throws usage_error (errc::invalid_request), naming the array and the place: for vectors whose lengths do
// not fit, for rows that do not ascend from 0 to the number of elements, for a column that the vectors have no element
// for; what reading throws.  y is then undefined.
//
// Threads: no other thread may write to the arrays or vectors meanwhile.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "oocarray/detail/multiply_engine.hpp"
#include "oocarray/detail/sparse_program.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {

/// See above.  It refers to arrays that outlive it.
template <detail::multiplied_element T, std::integral Column, std::integral Row>
struct sparse_matrix {
  const ooc_array<T, 1>& values;
  const ooc_array<Column, 1>& columns;
  const ooc_array<Row, 1>& rows;
};
template <class T, class Column, class Row>
sparse_matrix(const ooc_array<T, 1>&, const ooc_array<Column, 1>&, const ooc_array<Row, 1>&)
    -> sparse_matrix<T, Column, Row>;

/// y = A x, for as many vectors at once as y has elements for each row; see above.
template <class T, class Column, class Row>
pass_statistics multiply(const sparse_matrix<T, Column, Row>& a, std::type_identity_t<std::span<const T>> x,
                         std::type_identity_t<std::span<T>> y, const pass_options& options = {}) {
  // The call may change which blocks are in memory, not the arrays themselves.
  const auto core = [](const auto& array) { return const_cast<detail::array_core*>(&array.core()); };
  if (a.rows.size() == 0)
    throw usage_error(errc::invalid_request, "'" + a.rows.path() +
                                                 "' has no elements, and the beginnings of rows at "
                                                 "least one: 0");
  return detail::run_sparse_product<T, Column, Row>(
      {core(a.values), core(a.columns), core(a.rows), a.values.size(), a.rows.size() - 1}, a.rows.data(), x, y,
      options);
}

}  // namespace ooc
