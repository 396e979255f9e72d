// Sweeps of a stencil over an array larger than memory, several steps in one pass.
//
//     auto jacobi = ooc::stencil({1, 1}, [](auto& out, const auto& in) {
//       for (auto j = out.lower(1); j < out.upper(1); ++j)
//         out[j] = 0.25 * (in[-1][j] + in[1][j] + in[0][j - 1] + in[0][j + 1]);
//     });
//     ooc::sweep(a, 100, jacobi);      // a in place
//     ooc::sweep(a, b, 100, jacobi);   // a is only read
//
// A step computes every element anew from its neighbours before the step.  Step by step, each step
// reads and writes the whole array.  sweep() computes k steps in one pass: as soon as 2 r + 1 *slabs*
// (a slab is a[i]: an element, a row, a plane) of one step are known, the next step can compute a slab.
// The slabs in between stay in memory, which the runtime's budget lends for the call; the disk sees one
// read and one write of the array in k steps.  docs/algorithms.md has the model and its sources.
//
// Slabs of which memory holds too few are cut in the second dimension, and what neighbouring parts need of each
// other is kept in a temporary file beside the array; see sweep_options::width.
//
// The result is bit by bit that of the plain loop, whatever the fused steps, parts, threads and ranks.
//
// *The kernel* computes a part of one slab: kernel(out, in).  `in[d]` is the slab d places away,
// -r <= d <= r, as it was before the step; `out` is the slab to be computed.  For an array of N
// dimensions a slab has N - 1 indices, counted from 0: out[j], in[-1][j] (N = 2), out[j][k],
// in[0][j - 1][k] (N = 3).  The kernel computes the elements out.lower(k) <= index < out.upper(k) in
// each dimension k = 1 ... N - 1, and writes no others.  For N = 1 a slab is one element:
// `out.value() = 0.5 * (in[-1] + in[1])`.  The kernel is called from several threads at once, for
// different parts.  It must not touch the arrays that are being swept.
//
// Elements within the radius of an end keep their values; stencil::periodic() joins the ends of a dimension.  Seven
// points of a cube:
//
//     ooc::sweep(u, 100, ooc::stencil({1, 1, 1}, [](auto& out, const auto& in) {
//       for (auto j = out.lower(1); j < out.upper(1); ++j)
//         for (auto k = out.lower(2); k < out.upper(2); ++k)
//           out[j][k] = (in[-1][j][k] + in[1][j][k] + in[0][j - 1][k] + in[0][j + 1][k] + in[0][j][k - 1] +
//                        in[0][j][k + 1]) / 6;
//     }));
//
// *Spans.*  For code that takes them, elements of a row are a std::span, from index to index: for N = 2 `out.span()`
// is what is to be computed, and `in[-1].span(out.lower(1), out.upper(1))` what lies before it; for N = 3 rows are
// in[0][j].span(...).  Where the compiler has std::mdspan, a box of a slab is one: out.mdspan(),
// in[0].mdspan({l1, l2}, {u1, u2}), whose indices begin at 0.  data() points to index 0 of the slab.
//
// *Several fields* are swept together: `ooc::sweep(std::tie(u, v), steps, stencil)`.  Then
// `auto [u1, v1] = out;` are the slabs to be computed, and `const auto& [u0, v0] = in;` the former
// ones: u0[-1][j].  With `ooc::sweep(std::tie(u, v), std::tie(p, q), steps, stencil)` u and v are only read.
// Arrays that no step changes are given to stencil::with() and come as third argument,
// `c[0][j]`, or as a tuple where there are several; they may be captured too, but then k steps come back
// to each of their blocks k times, and the budget must have room for what lies between.
//
// *Ranks.*  Over arrays of a group the call is collective, and each rank computes its own rows.  Once a
// pass, rows near borders are exchanged with sync_halo(); each rank computes the steps between on
// these rows too.  Afterwards other ranks see the result after sync(), as with any writes (without
// sweep_options::mark; with it, sweep() has done that).  Coefficients must be seen by all ranks: sync()
// them after writing.  With check_conflicts a block that holds rows of two parts is reported: give such
// arrays blocks of few rows.
//
// *Errors.*  Throws usage_error (errc::budget_too_small) if memory has no room for one step at a time,
// naming what would do; (errc::invalid_request) for arrays of different shapes or ranks' parts, a
// radius that does not fit the rank, arrays that are read-only; io_error (ENOSPC) where the temporary file
// finds no room, and (errc::busy) where slabs are to be cut of an array that is pinned, both before anything is
// written; what sync() throws; what kernel and callbacks throw; and ooc::error (operation_canceled) where
// sweep_options::progress says so.  After an exception of these, or of the store, the arrays that are written
// hold neither old nor new elements, and keep their mark.
//
// Threads: no other thread may use the arrays meanwhile.  Data are acknowledged and durable on return
// with sweep_options::mark, else modified as after any loop.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/detail/sweep_engine.hpp"
#include "oocarray/detail/sweep_program.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {

/// The result of sweep().  `values`: of each step that was reported, see stencil_of::reduce.
template <class Value>
struct sweep_result : sweep_statistics {
  std::vector<Value> values;
};

/// A stencil: its radius in each dimension, its kernel, and what else belongs to a step.  Made by
/// stencil(); each function returns a stencil with one thing more.
template <std::size_t N, class Kernel, class Edges = detail::nothing, class Reduce = detail::nothing,
          class After = detail::nothing, class Coefficients = std::tuple<>>
class stencil_of {
 public:
  std::array<std::size_t, N> radius{};
  std::array<boundary, N> boundaries{};
  Kernel kernel;
  Edges completed{};
  Reduce reduction{};
  std::size_t period = 0;
  After callback{};
  Coefficients coefficients{};
  bool completes_parts = false;  ///< see edges_in_parts()
  bool former = false;           ///< see keeps_former()

  /// The ends of dimension k meet, or, as may be known at run time only, do not: periodic(0, wraps).  Without it
  /// elements within the radius of an end keep their values.
  stencil_of periodic(std::size_t k, bool meet = true) const {
    stencil_of s = *this;
    s.boundaries.at(k) = meet ? boundary::periodic : boundary::fixed;
    return s;
  }
  /// Of several fields the last one is the first as it was a step before, its ends included, as an equation of
  /// second order in time has it.  The kernel reads it where it computes, in[0][j], and nowhere else, and does not
  /// write it: the library has those values anyway, so memory holds nearly twice as many steps.
  stencil_of keeps_former() const {
    stencil_of s = *this;
    s.former = true;
    return s;
  }
  /// A boundary of the program's own: edges(out, in) is called for each slab of each step, once the
  /// kernel has computed its inside and the library has copied what the kernel leaves out.  It may
  /// write any element of `out`: 0 <= index < out.extent(k).  in[d] is there where slab out.index() + d
  /// is.  out.step() counts from 1.
  template <class F>
  auto edges(F f) const {
    return stencil_of<N, Kernel, F, Reduce, After, Coefficients>{
        radius, boundaries, kernel, std::move(f), reduction, period, callback, coefficients, false, former};
  }
  /// The same for parts of slabs, so that slabs may be cut (sweep_options::width): edges(out, in) is called
  /// for parts that make up the slab, and writes only elements with out.lower(k) <= index < out.upper(k).
  template <class F>
  auto edges_in_parts(F f) const {
    auto s = edges(std::move(f));
    s.completes_parts = true;
    return s;
  }
  /// The kernel returns a value for each part of a slab; those of one step are combined, beginning with
  /// `identity`, in the order of the slabs, so that the result depends on neither threads nor fused
  /// steps, nor, for N > 1, on ranks.  Values are wanted of the last step and of those that after() names;
  /// for others out.reported() is false, and what the kernel returns is not looked at.
  template <class Value, class F>
  auto reduce(Value identity, F combine) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    using reduction_type = detail::sweep_reduction<Value, F>;
    return stencil_of<N, Kernel, Edges, reduction_type, After, Coefficients>{
        radius, boundaries, kernel,       completed,       reduction_type{identity, std::move(combine)},
        period, callback,   coefficients, completes_parts, former};
  }
  /// f(step, value), or f(step) without reduce(), is called after every m steps and after the last; on
  /// ranks by all of them.  It may return false to end the sweep there; on ranks it is enough that one does.  It must
  /// not touch the arrays, for other threads of the sweep wait, but other ranks may not.
  template <class F>
  auto after(std::size_t m, F f) const {
    return stencil_of<N, Kernel, Edges, Reduce, F, Coefficients>{
        radius, boundaries, kernel, completed, reduction, m, std::move(f), coefficients, completes_parts, former};
  }
  /// Arrays of the same shape that the kernel reads; they must outlive the stencil.
  template <class... C>
  auto with(const C&... arrays) const {
    using all = std::tuple<const C*...>;
    return stencil_of<N, Kernel, Edges, Reduce, After, all>{
        radius, boundaries, kernel, completed, reduction, period, callback, all{&arrays...}, completes_parts, former};
  }
};

/// `ooc::stencil({1, 1}, kernel)`.
template <std::size_t N, class Kernel>
stencil_of<N, Kernel> stencil(const std::size_t (&radius)[N], Kernel kernel) {
  stencil_of<N, Kernel> s{.kernel = std::move(kernel)};
  for (std::size_t k = 0; k < N; ++k) s.radius[k] = radius[k];
  return s;
}

/// Several fields, from arrays that are only read to others: `ooc::sweep(std::tie(u, v), std::tie(p, q), steps,
/// stencil)`.  A field whose array is the same in both is swept in place.  0 steps copy the others.
template <std::size_t N, class... From, class... T, class... S>
auto sweep(std::tuple<From&...> from, std::tuple<ooc_array<T, N>&...> to, std::size_t steps,
           const stencil_of<N, S...>& s, const sweep_options& options = {}) {
  static_assert(std::is_same_v<std::tuple<std::remove_const_t<From>...>, std::tuple<ooc_array<T, N>...>>,
                "sweep(): the arrays that are read and those that are written hold the same types");
  using stencil_type = stencil_of<N, S...>;
  using program_type = detail::stencil_program<N, stencil_type, T...>;
  program_type program(s);
  detail::sweep_request r;
  [&]<std::size_t... F>(std::index_sequence<F...>) {
    // sync_halo() changes what of the array is in memory, not the array.
    (r.fields.push_back(
         {const_cast<detail::array_core*>(&std::get<F>(from).core()), &std::get<F>(to).core(), sizeof(T)}),
     ...);
  }
  (std::index_sequence_for<T...>{});
  std::apply(
      [&](const auto*... c) {
        (r.coefficients.push_back({&c->core(), sizeof(typename std::remove_cvref_t<decltype(*c)>::value_type)}), ...);
      },
      s.coefficients);
  r.radius.assign(s.radius.begin(), s.radius.end());
  r.boundaries.assign(s.boundaries.begin(), s.boundaries.end());
  r.steps = steps;
  r.every = s.period;
  r.completes = program_type::has_edges;
  r.completes_parts = s.completes_parts;
  r.values = program_type::has_values;
  r.keeps_former = s.former;
  r.options = options;
  sweep_result<typename program_type::value_type> result;
  static_cast<sweep_statistics&>(result) = detail::run_sweep(r, program);
  result.values = program.take_values();
  return result;
}

/// In place: `ooc::sweep(a, steps, stencil)`.
template <class T, std::size_t N, class... S>
auto sweep(ooc_array<T, N>& a, std::size_t steps, const stencil_of<N, S...>& s, const sweep_options& options = {}) {
  return sweep(std::tie(a), std::tie(a), steps, s, options);
}

/// From a to b; `a` is only read.  The first pass goes from a to b, later ones within b.  After 0 steps b is a copy.
template <class T, std::size_t N, class... S>
auto sweep(const ooc_array<T, N>& a, ooc_array<T, N>& b, std::size_t steps, const stencil_of<N, S...>& s,
           const sweep_options& options = {}) {
  return sweep(std::tie(a), std::tie(b), steps, s, options);
}

/// Several fields in place: `ooc::sweep(std::tie(u, v), steps, stencil)`.
template <std::size_t N, class... T, class... S>
auto sweep(std::tuple<ooc_array<T, N>&...> all, std::size_t steps, const stencil_of<N, S...>& s,
           const sweep_options& options = {}) {
  return sweep(all, all, steps, s, options);
}

}  // namespace ooc
