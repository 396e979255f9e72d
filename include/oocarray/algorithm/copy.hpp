// Copies and transpositions of arrays larger than memory, from file to file.
//
//     ooc::copy(a, b);                        // any layouts, orders in the file, convertible types
//     ooc::copy(a, {{0, 0}, {9, 9}}, b, {5, 5});   // a box of a, to where b's begins
//     ooc::transpose(a, b, {2, 0, 1});        // b(k, i, j) = a(i, j, k)
//     ooc::transpose(a, b);                   // the dimensions in reverse order
//     ooc::transpose(a, {{0, 0}, {9, 4}}, b, {5, 5});   // a box of a, to where b's begins
//     ooc::transpose(a);                      // a square matrix in place
//
// Each element is read once and written once.  Boxes whose edges are chosen from the budget, and
// from the orders of both files so that both see long runs, go past the blocks in memory: one is
// read while another is turned in memory and a third is written.  docs/algorithms.md has the model.
//
// Elements are converted by static_cast.  Before, what is modified in memory is written back;
// afterwards no block of the target is in memory.
//
// *Ranks.*  Over arrays of a group the calls are collective.  Each rank writes its own rows of the
// target (in place: about as many boxes as the others).  Afterwards every rank sees the result.
//
// *Errors.*  Throws usage_error (errc::invalid_request) for shapes that do not match, a permutation
// that is none, an array copied to itself, an array that is read-only; (errc::budget_too_small)
// where not even four blocks of 4 KiB are left of the budget, naming what would do; (errc::busy)
// while a region of the target is pinned; io_error; and what the callback throws.  State of the
// target after an error, or the death of the process: see pass.hpp.  Out of place each of its
// elements is then the old or the new one; where the process died, a chunk of 4 KiB that was being
// written may be torn, which reading reports.  A matrix in place may have lost elements.
//
// Threads: no other thread may use the arrays meanwhile.  Data are durable on return with
// pass_options::mark, else acknowledged.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/copy_engine.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {

namespace detail {

/// static_cast<U>(T) is there.
template <class T, class U>
concept converts_to = requires(const T& x) {
  static_cast<U>(x);
};

template <class T, std::size_t N, class From, class U, class To>
copy_request copy_of(const char* verb, const ooc_array<T, N, From>& a, ooc_array<U, N, To>& b,
                     const pass_options& options) {
  copy_request r;
  r.verb = verb;
  // Writing back changes what of the array is in memory, not the array.
  r.from = const_cast<array_core*>(&a.core());
  r.to = &b.core();
  r.from_size = sizeof(T);
  r.to_size = sizeof(U);
  r.from_lower.assign(N, 0);
  r.to_lower.assign(N, 0);
  r.kernel = kernel_for<T, U>();
  r.options = options;
  return r;
}

template <class T, std::size_t N, class From, class U, class To>
copy_request boxed_copy_of(const char* verb, const ooc_array<T, N, From>& a, const box<N>& which,
                           ooc_array<U, N, To>& b, const ooc::coordinates<N>& where,
                           const std::array<std::size_t, N>& permutation, const pass_options& options) {
  copy_request r = copy_of(verb, a, b, options);
  r.from_lower.assign(which.lower.begin(), which.lower.end());
  r.to_lower.assign(where.begin(), where.end());
  r.permutation.assign(permutation.begin(), permutation.end());
  for (std::size_t k = 0; k < N; ++k)
    if (which.upper[k] < which.lower[k])
      throw usage_error(errc::invalid_request, std::string(verb) + ": the box of array '" + a.path() +
                                                   "' is in dimension " + std::to_string(k) + " from " +
                                                   std::to_string(which.lower[k]) + " to " +
                                                   std::to_string(which.upper[k]));
  for (const std::size_t j : permutation)  // run_copy() refuses a dimension that there is not
    r.extents.push_back(j >= N ? 0 : which.extent(j));
  return r;
}

template <std::size_t N>
constexpr std::array<std::size_t, N> reversed_dimensions() noexcept {
  std::array<std::size_t, N> reverse{};
  for (std::size_t k = 0; k < N; ++k) reverse[k] = N - 1 - k;
  return reverse;
}

}  // namespace detail

/// The elements of `which` of a, into b from `where` on.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics copy(const ooc_array<T, N, From>& a,
                                                        const std::type_identity_t<box<N>>& which,
                                                        ooc_array<U, N, To>& b,
                                                        const std::type_identity_t<coordinates<N>>& where,
                                                        const pass_options& options = {}) {
  std::array<std::size_t, N> same{};
  for (std::size_t k = 0; k < N; ++k) same[k] = k;
  return detail::run_copy(detail::boxed_copy_of("copy", a, which, b, where, same, options));
}

/// All of a, into b, which has the same extents.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics copy(const ooc_array<T, N, From>& a, ooc_array<U, N, To>& b,
                                                        const pass_options& options = {}) {
  detail::copy_request r = detail::copy_of("copy", a, b, options);
  r.extents.assign(b.extents().begin(), b.extents().end());
  for (std::size_t k = 0; k < N; ++k) r.permutation.push_back(k);
  if (a.extents() != b.extents()) r.extents.clear();
  return detail::run_copy(r);
}

/// Dimension k of b is dimension permutation[k] of a.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics transpose(const ooc_array<T, N, From>& a, ooc_array<U, N, To>& b,
                                                             const std::array<std::size_t, N>& permutation,
                                                             const pass_options& options = {}) {
  detail::copy_request r = detail::copy_of("transposition", a, b, options);
  r.extents.assign(b.extents().begin(), b.extents().end());
  r.permutation.assign(permutation.begin(), permutation.end());
  for (std::size_t k = 0; k < N; ++k)
    if (permutation[k] < N && a.extent(permutation[k]) != b.extent(k)) {
      r.extents.clear();
      break;
    }
  return detail::run_copy(r);
}
template <class T, std::size_t N, class From, class U, class To>
pass_statistics transpose(const ooc_array<T, N, From>& a, ooc_array<U, N, To>& b, const std::size_t (&permutation)[N],
                          const pass_options& options = {}) {
  return transpose(a, b, std::to_array(permutation), options);
}

/// The dimensions in reverse order.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics transpose(const ooc_array<T, N, From>& a, ooc_array<U, N, To>& b,
                                                             const pass_options& options = {}) {
  return transpose(a, b, detail::reversed_dimensions<N>(), options);
}

/// The elements of `which` of a, into b from `where` on; dimension k of b is dimension permutation[k] of a.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics transpose(const ooc_array<T, N, From>& a,
                                                             const std::type_identity_t<box<N>>& which,
                                                             ooc_array<U, N, To>& b,
                                                             const std::type_identity_t<coordinates<N>>& where,
                                                             const std::array<std::size_t, N>& permutation,
                                                             const pass_options& options = {}) {
  return detail::run_copy(detail::boxed_copy_of("transposition", a, which, b, where, permutation, options));
}
template <class T, std::size_t N, class From, class U, class To>
pass_statistics transpose(const ooc_array<T, N, From>& a, const std::type_identity_t<box<N>>& which,
                          ooc_array<U, N, To>& b, const std::type_identity_t<coordinates<N>>& where,
                          const std::size_t (&permutation)[N], const pass_options& options = {}) {
  return transpose(a, which, b, where, std::to_array(permutation), options);
}

/// The same with the dimensions in reverse order.
template <class T, std::size_t N, class From, class U, class To>
requires detail::converts_to<T, U> pass_statistics transpose(const ooc_array<T, N, From>& a,
                                                             const std::type_identity_t<box<N>>& which,
                                                             ooc_array<U, N, To>& b,
                                                             const std::type_identity_t<coordinates<N>>& where,
                                                             const pass_options& options = {}) {
  return transpose(a, which, b, where, detail::reversed_dimensions<N>(), options);
}

/// A square matrix in place.
template <class T, class Layout>
pass_statistics transpose(ooc_array<T, 2, Layout>& a, const pass_options& options = {}) {
  detail::copy_request r = detail::copy_of("transposition", a, a, options);
  r.permutation = {1, 0};
  if (a.extent(0) == a.extent(1)) r.extents = {a.extent(0), a.extent(1)};
  return detail::run_copy(r);
}

}  // namespace ooc
