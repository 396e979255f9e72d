// Products of matrices larger than memory.
//
//     ooc::multiply(a, b, c);                     // c = a b, three arrays
//     ooc::multiply(a, std::span(x), std::span(y));   // y = a x, vectors in memory; several are the columns of x
//
// Elements are float, double, std::complex<float> or std::complex<double>; panels in memory are multiplied by
// Eigen (and so by a BLAS in a program that defines EIGEN_USE_BLAS).  A tile of c stays in memory while panels of
// a and b pass by, each read while the last is multiplied.  The library chooses tile and panels
// from the memory that the budget has to spare so that as few bytes as possible are read, in parts of the file that are
// long enough for a disk (docs/algorithms.md has the formulas).  Bytes move past the blocks.
//
// A product is that of Eigen within rounding: sums are taken panel by panel, and so depend on the memory and on
// the number of ranks, on threads only as Eigen's do.  Eigen's own buffers, up to 4 MiB for each thread, are
// taken off the budget too.  Where Eigen uses OpenMP, its threads are used, and not those of options.threads.
// Eigen does not say how many threads a BLAS uses: give it one (OPENBLAS_NUM_THREADS=1), or options.threads
// = 1.
//
// *Ranks.*  Over a c of a group the call is collective, and a and b are arrays of the same group or opened by
// each rank for itself.  Each rank computes its own rows of c and reads those of a.  Of each panel of b it
// reads a share and passes that on to the others, as read_all() does, so that all of them read it once.  All
// ranks take as much memory as the one with the least has.  Afterwards every rank sees the result.  The form
// with vectors is collective where a is an array of a group: x is the same on all ranks, and so is y
// afterwards.
//
// *Errors.*  Throws usage_error (errc::invalid_request) for matrices that do not fit together, for a c that is
// also a or b, and for a c that other processes write to (options.shared); (errc::busy) while a region of c is
// pinned; (errc::budget_too_small); io_error.  On ranks all throw what one of them throws.  From the first
// write of c on, an error, a cancellation or a death leaves c neither old nor new, and marked (pass.hpp); y, if
// it is in memory, is then undefined.  a and b stay as they are.
//
// Threads: no other thread may use the arrays meanwhile.  On return c is acknowledged, and with options.mark
// durable; its blocks have left memory.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "oocarray/detail/multiply_engine.hpp"
#include "oocarray/detail/product_kernel.hpp"
#include "oocarray/error.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {
namespace detail {

template <class T, class Layout>
matrix_operand operand(const ooc_array<T, 2, Layout>& a) {
  // The call may change which of its blocks are in memory, not the array itself.
  return {const_cast<array_core*>(&a.core()), nullptr, a.extent(0), a.extent(1)};
}

}  // namespace detail

/// c = a b.
template <detail::multiplied_element T, class A, class B, class C>
multiply_statistics multiply(const ooc_array<T, 2, A>& a, const ooc_array<T, 2, B>& b, ooc_array<T, 2, C>& c,
                             const multiply_options& options = {}) {
  return detail::run_multiply(detail::operand(a), detail::operand(b), detail::operand(c), detail::eigen_kernel<T>(),
                              options);
}

/// y = a x, for as many vectors at once as x has columns: x has a.extent(1) rows, y a.extent(0), both row-major in
/// memory of the program (which the budget does not count).
template <detail::multiplied_element T, class A>
multiply_statistics multiply(const ooc_array<T, 2, A>& a, std::type_identity_t<std::span<const T>> x,
                             std::type_identity_t<std::span<T>> y, const multiply_options& options = {}) {
  a.core().check_open();  // else it has no columns
  const std::size_t columns = x.size() / a.extent(1);
  if (columns == 0 || x.size() != columns * a.extent(1) || y.size() != columns * a.extent(0))
    throw usage_error(errc::invalid_request, "product of '" + a.path() + "', " + std::to_string(a.extent(0)) + " by " +
                                                 std::to_string(a.extent(1)) + ", with vectors in memory: x has " +
                                                 std::to_string(x.size()) + " elements and y " +
                                                 std::to_string(y.size()) +
                                                 "; for k vectors they have k times as many as a has columns and rows");
  auto* const from = const_cast<T*>(x.data());
  return detail::run_multiply(detail::operand(a), {nullptr, reinterpret_cast<std::byte*>(from), a.extent(1), columns},
                              {nullptr, reinterpret_cast<std::byte*>(y.data()), a.extent(0), columns},
                              detail::eigen_kernel<T>(), options);
}

}  // namespace ooc
