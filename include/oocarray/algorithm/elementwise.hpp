// Passes over arrays larger than memory, element by element, in the order in which the elements
// lie.
//
//     ooc::for_each(a, [](double& x) { x = 1 / x; });
//     ooc::for_each(std::tie(a, b), [](double& x, float& y) { std::swap... });
//     ooc::for_each(a, [](double& x, std::size_t i, std::size_t j) { x *= w[i] * w[j]; });
//     ooc::transform(a, b, c, [](double x, double y) { return x * y; });   // c = a * b
//     ooc::generate(a, [](std::size_t i, std::size_t j) { return 1.0 / (i + j + 1); });
//     ooc::fill(a, 0.0);
//     double sum = ooc::reduce(a, 0.0);
//     double norm = ooc::transform_reduce(a, 0.0, std::plus<>(), [](double x) { return x * x; });
//     double inner = ooc::transform_reduce(a, b, 0.0);
//     const auto [value, at] = ooc::max_element(a).value;   // and its coordinates
//     ooc::inclusive_scan(a, b);                  // b[i] = a[0] + ... + a[i]
//     auto h = ooc::histogram(a, 0.0, 1.0, 100);  // h.value.counts[k]
//
// Each pass reads each array once, or writes it, and nothing that is overwritten is read;
// docs/algorithms.md has the model.  The functions are called by several threads at once, on
// contiguous elements in a loop that vectorises where the function does.  They must not touch the
// arrays by other ways, and see elements in any order.  Functions of for_each, transform and transform_reduce that
// cannot be called with elements alone are given the indices of each element too, of the whole array.  Arrays of one
// call have the same extents;
// their element types, blocks and orders in the file may differ.  Their layouts may differ too, but
// then memory must hold a band of tiles of both.
//
// *Reductions* need an operation that is associative and commutative up to rounding.  The result is
// that of a tree of fixed shape, and so the same on any number of threads, to the last bit.  On
// ranks it is with pass_options::reproducible; without that, each rank's part is a tree of its own.
//
// *Ranks.*  Over arrays of a group the calls are collective.  Each rank does its own rows
// (local_box()), which must be the same rows of all arrays that are written, and sees what others
// have written to its inputs as any access does: after sync().  Results of reductions are the same
// on all ranks; what is written others see after sync() (with pass_options::mark, the default, that
// has been done).
//
// *Errors.*  Throws usage_error (errc::invalid_request) for extents that differ, an array that is
// written twice or is read-only, and (errc::budget_too_small) for layouts that differ, naming the
// memory that would do; what sync() throws; and what the functions throw, after which arrays that
// are written hold old and new elements, and those of which nothing is read also zeros, in blocks that had been begun.
// So does a block that cannot be read: what is gone over is brought in before
// the functions see it.  Only where blocks leave memory again before that (a budget of a few blocks), and where
// modified blocks cannot be written for want of memory, does the failure end the process, as in any element access.
// See pass.hpp for marks, progress and cancelling.
//
// Threads: no other thread may use the arrays meanwhile.  Data are durable on return with
// pass_options::mark, else modified as after any loop.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/histogram_bins.hpp"
#include "oocarray/detail/span_programs.hpp"
#include "oocarray/error.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {

/// The result of min_element() and max_element().
template <class T, std::size_t N>
struct found_element {
  T value{};
  coordinates<N> at{};
};

/// The result of histogram().
struct histogram_counts {
  std::vector<std::uint64_t> counts;  ///< of each bin
  std::uint64_t outside = 0;          ///< elements in no bin
};

namespace detail {

template <class A>
struct is_array : std::false_type {};
template <class T, std::size_t N, class L>
struct is_array<ooc_array<T, N, L>> : std::true_type {};
/// An ooc_array, const or not.
template <class A>
concept any_array = is_array<std::remove_cvref_t<A>>::value;

template <class A>
using element_of = typename std::remove_cv_t<A>::value_type;
/// const where the array is.
template <class A>
using accessed = std::conditional_t<std::is_const_v<A>, const element_of<A>, element_of<A>>;

template <class A>
constexpr std::size_t dimensions_of = std::tuple_size_v<typename std::remove_cv_t<A>::index_type>;

template <std::size_t>
using one_index = std::size_t;
template <class F, class Dimensions, class... X>
inline constexpr bool takes_indices = false;
template <class F, std::size_t... K, class... X>
inline constexpr bool takes_indices<F, std::index_sequence<K...>, X...> = std::invocable<F&, X..., one_index<K>...>;
/// How many indices f(x...) is given after the elements X of arrays of N dimensions: none if it can do without.
template <class F, std::size_t N, class... X>
inline constexpr std::size_t indices_for =
    !std::invocable<F&, X...> && takes_indices<F, std::make_index_sequence<N>, X...> ? N : 0;

template <class A>
span_array in_pass(A& a, bool read, bool written) {
  // Bringing its blocks in changes what of the array is in memory, not the array.
  return {const_cast<array_core*>(&a.core()), sizeof(element_of<A>), read, written};
}

template <class Program>
pass_statistics run_spans(const span_request& r, Program& program) {
  span_run run(r);
  run.begin();
  run.pass(program);
  return run.finish();
}

template <class Out, class F, class... A>
pass_statistics transform_all(Out& out, F& f, const pass_options& options, const A&... in) {
  span_request r{.verb = "transformation", .options = options};
  span_array written = in_pass(out, false, true);
  [[maybe_unused]] const auto add = [&](span_array a) {
    a.read = a.core != written.core;
    written.read = written.read || !a.read;  // in place
    r.arrays.push_back(a);
  };
  (add(in_pass(in, true, false)), ...);
  r.arrays.push_back(written);
  constexpr std::size_t indices = indices_for<F, dimensions_of<Out>, const element_of<A>&...>;
  r.indices = indices != 0;
  transform_program<indices, F, element_of<Out>, element_of<A>...> program(f);
  return run_spans(r, program);
}

/// Over the arrays of the request, whose elements are of types T...; each has `elements` of them.  `indices`: that
/// f is given, or 0.
template <std::size_t indices, class... T, class Value, class Op, class F>
pass_result<Value> reduce_spans(span_request r, std::size_t elements, Value init, Op& op, F& f) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const bool reproducible = r.options.reproducible;
  r.rule = reproducible ? piece_rule::whole : piece_rule::fixed;
  r.reads_others = reproducible;  // pieces go beyond the rank's own rows
  r.memory = elements / elements_of_piece * sizeof(std::optional<Value>);
  r.indices = indices != 0;
  reduce_program<indices, Value, Op, F, T...> program(op, f);
  span_run run(r);
  run.begin();
  run.pass(program);
  std::vector<held_value<Value>> mine = program.values();
  if (run.ranks() > 1) {
    const auto told = run.gathered([&] {
      if (!reproducible && mine.size() > 1) mine.assign(1, {fold_pieces(mine.data(), mine.size(), op)});
      return bytes_of_values(mine);
    });
    mine.clear();
    for (const auto& of_rank : told) add_values(mine, of_rank, {init});
  }
  pass_result<Value> result{run.finish(), init};
  if (!mine.empty()) result.value = op(init, fold_pieces(mine.data(), mine.size(), op));
  return result;
}

template <class Value, class Op, class F, class... A>
pass_result<Value> reduce_all(Value init, Op& op, F& f, const pass_options& options, const A&... in) {
  span_request r{.verb = "reduction", .options = options};
  (r.arrays.push_back(in_pass(in, true, false)), ...);
  constexpr std::size_t n = dimensions_of<std::tuple_element_t<0, std::tuple<A...>>>;
  return reduce_spans<indices_for<F, n, const element_of<A>&...>, element_of<A>...>(
      std::move(r), std::get<0>(std::tie(in...)).size(), init, op, f);
}

/// The element as it is.
struct same_value {
  template <class T>
  const T& operator()(const T& x) const noexcept {
    return x;
  }
};

/// Sums up `first` and then the parts of the ranks before this one by `op`, when it is called: in a pass, where what
/// `op` throws comes out on all ranks.
template <class T, class U, class Op>
std::function<scanned_before<U>()> parts_before(span_run& run, const std::optional<U>& first, Op& op) {
  same_value f;
  reduce_program<0, U, Op, same_value, T> sums(op, f);
  run.pass(sums);
  auto told = run.gathered([&] {
    std::vector<held_value<U>> mine = sums.values();
    if (mine.size() > 1) mine.assign(1, {fold_pieces(mine.data(), mine.size(), op)});
    return bytes_of_values(mine);
  });
  std::vector<held_value<U>> of_ranks;
  for (int rank = 0; rank < run.rank(); ++rank) add_values(of_ranks, told[static_cast<std::size_t>(rank)], {});
  return [first, of_ranks, &op] {
    scanned_before<U> before{first, {}};
    for (const auto& sum : of_ranks) before.pieces = before.pieces ? op(*before.pieces, sum.value) : sum.value;
    return before;
  };
}

/// The same from pieces that end where they would on one rank.  A piece that the ranks' parts cut is summed up
/// from its beginning by each of them.
template <class T, class U, std::size_t N, class Op>
std::function<scanned_before<U>()> pieces_before(span_run& run, const ooc_array<T, N>& a, ooc_array<U, N>& b,
                                                 const std::optional<U>& begin, Op& op) {
  const std::size_t row = b.size() / std::max<std::size_t>(b.extent(0), 1);
  const std::size_t first = b.local_box().lower[0] * row, last = b.local_box().upper[0] * row;
  const std::size_t cut = first % elements_of_piece;
  const std::span<const T> of_others = a.span().subspan(first - cut, cut);
  piece_sums_program<Op, T, U> sums(op, of_others,
                                    [&] { run.bring_in(a.core(), of_others.data(), of_others.size_bytes()); });
  run.pass(sums);
  // To whom looks for conflicts, this ends the reads of what other ranks will write.
  if (&a.core() == &b.core()) b.core().ranks().sync_halo(0);
  const bool ends_in_piece = last % elements_of_piece != 0 && last != b.size();
  const auto told = run.gathered([&] {
    std::vector<held_value<U>> mine = sums.values();
    if (ends_in_piece && !mine.empty()) mine.pop_back();
    return bytes_of_values(mine);
  });
  std::vector<held_value<U>> all;
  for (const auto& of_rank : told) add_values(all, of_rank, {});
  all.resize(first / elements_of_piece);
  return [begin, head = sums.head(), all, &op] {
    scanned_before<U> before{begin, head};
    for (const auto& sum : all) before.pieces = before.pieces ? op(*before.pieces, sum.value) : sum.value;
    return before;
  };
}

/// From the first array of the request, of T, into the second, of U, which may be the first.  `first`: what comes
/// before all, of an exclusive scan.  `before` finds out, on several ranks, what comes before the part of this one.
template <bool Exclusive, class T, class U, class Op, class Before>
pass_statistics scan_spans(span_request r, const std::optional<U>& first, Op& op, Before before) {
  r.rule = piece_rule::fixed;
  if (r.arrays[0].core == r.arrays[1].core) r.arrays[0].read = false, r.arrays[1].read = true;
  span_run run(r);
  run.begin(run.ranks() > 1 ? 2 : 1);
  const bool sums = run.ranks() > 1 && !r.options.plan;
  std::function<scanned_before<U>()> known = [&] { return scanned_before<U>{first, {}}; };
  if (sums) known = before(run);
  scan_program<Exclusive, Op, T, U> scan(op, std::move(known));
  run.pass(scan);
  return run.finish();
}
template <class T, class U, class Op>
pass_statistics scan_spans(span_request r, Op& op) {
  return scan_spans<false, T, U>(std::move(r), std::optional<U>(), op,
                                 [&](span_run& run) { return parts_before<T, U>(run, {}, op); });
}
/// Of all elements, in row-major order.
template <bool Exclusive, class T, class U, std::size_t N, class Op>
pass_statistics scan_all(const ooc_array<T, N>& a, ooc_array<U, N>& b, const std::optional<U>& first, Op& op,
                         const pass_options& options) {
  span_request r{.verb = "scan", .options = options};
  r.arrays = {in_pass(a, true, false), in_pass(b, false, true)};
  if (options.reproducible) {
    r.reads_others = true;
    r.memory = a.size() / elements_of_piece * sizeof(std::optional<U>);
  }
  return scan_spans<Exclusive, T, U>(std::move(r), first, op, [&](span_run& run) {
    return options.reproducible ? pieces_before(run, a, b, first, op) : parts_before<T, U>(run, first, op);
  });
}

/// f of indices, and of nothing else.
template <std::size_t N, class F>
struct by_indices_only {
  F& f;
  template <class... I>
  requires(sizeof...(I) == N) decltype(auto) operator()(I... at) const { return f(at...); }
};

template <class T, std::size_t N>
struct element_with_place {
  template <class... I>
  requires(sizeof...(I) == N) std::optional<found_element<T, N>>
  operator()(const T& x, I... at) const { return found_element<T, N>{x, {at...}}; }
};

/// The element that comes before all others by `less`, and of equal ones the first.  What is no number comes last.
template <class T, std::size_t N, class A, class Less>
pass_result<found_element<T, N>> first_by(const A& a, Less& less, const pass_options& options) {
  using found = std::optional<found_element<T, N>>;
  const auto no_number = []([[maybe_unused]] const T& x) {
    if constexpr (is_float<T>)
      return x != x;
    else
      return false;
  };
  auto better = [&](const found& x, const found& y) {
    if (!x || !y) return x ? x : y;
    const bool nan = no_number(x->value);
    if (nan != no_number(y->value)) return nan ? y : x;
    return less(y->value, x->value) || (!less(x->value, y->value) && y->at < x->at) ? y : x;
  };
  element_with_place<T, N> place;
  const pass_result<found> r = reduce_all(found(), better, place, options, a);
  if (options.plan) return {r, {}};
  if (!r.value)
    throw usage_error(errc::invalid_request, "array '" + a.path() + "' has no elements, and so none that comes first");
  return {r, *r.value};
}

/// How many elements of the array of the request, which are of type T, f puts into which bin.
template <class T, class F>
pass_result<histogram_counts> count_spans(span_request r, std::size_t bins, F& f) {
  const unsigned threads =
      r.options.threads != 0 ? r.options.threads : std::max(1U, std::thread::hardware_concurrency());
  r.options.threads = threads;
  const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(std::uint64_t) / threads;
  if (bins >= most)
    throw usage_error(errc::invalid_request, "histogram: " + std::to_string(bins) + " bins are more than " +
                                                 std::to_string(most - 1) + ", which " + std::to_string(threads) +
                                                 " threads can count");
  r.memory = std::uint64_t{threads} * (bins + 1) * sizeof(std::uint64_t);
  span_run run(r);
  histogram_program<F, T> program(f, bins, threads);
  run.begin();
  run.pass(program);
  std::vector<std::uint64_t> all = program.counts();
  if (run.ranks() > 1) {
    const auto told = run.gathered([&] { return bytes_of_values(all); });
    all.assign(bins + 1, 0);
    for (const auto& of_rank : told) {
      std::vector<std::uint64_t> counts;
      add_values(counts, of_rank, std::uint64_t{0});
      if (counts.size() != bins + 1)
        throw usage_error(errc::not_together, "histogram: the ranks ask for different numbers of bins");
      for (std::size_t b = 0; b <= bins; ++b) all[b] += counts[b];
    }
  }
  pass_result<histogram_counts> result{run.finish(), {}};
  result.value.outside = all.back();
  all.pop_back();
  result.value.counts = std::move(all);
  return result;
}

}  // namespace detail

/// f(x) for each element; f may change it where the array is not const.
template <detail::any_array A, class F>
pass_statistics for_each(A& a, F f, const pass_options& options = {}) {
  return for_each(std::tuple<A&>(a), std::move(f), options);
}
/// f(x, y, ...) for the elements of several arrays at each place; those that are const are only
/// read: `ooc::for_each(std::tie(a, std::as_const(b)), f)`.
template <detail::any_array... A, class F>
pass_statistics for_each(std::tuple<A&...> arrays, F f, const pass_options& options = {}) {
  detail::span_request r{.verb = "pass", .options = options};
  std::apply([&](A&... a) { (r.arrays.push_back(detail::in_pass(a, true, !std::is_const_v<A>)), ...); }, arrays);
  constexpr std::size_t n = detail::dimensions_of<std::tuple_element_t<0, std::tuple<A...>>>;
  constexpr std::size_t indices = detail::indices_for<F, n, detail::accessed<A>&...>;
  r.indices = indices != 0;
  detail::for_each_program<indices, F, detail::accessed<A>...> program(f);
  return detail::run_spans(r, program);
}

/// out(i, ...) = f(a(i, ...)).  `out` may be a.
template <detail::any_array A, detail::any_array Out, class F>
requires(!detail::any_array<F>) pass_statistics transform(const A& a, Out& out, F f, const pass_options& options = {}) {
  return detail::transform_all(out, f, options, a);
}
/// out(i, ...) = f(a(i, ...), b(i, ...)).  `out` may be one of them.
template <detail::any_array A, detail::any_array B, detail::any_array Out, class F>
pass_statistics transform(const A& a, const B& b, Out& out, F f, const pass_options& options = {}) {
  return detail::transform_all(out, f, options, a, b);
}
/// Of any number of arrays: `ooc::transform(std::tie(a, b, c), out, f)`.
template <detail::any_array... A, detail::any_array Out, class F>
pass_statistics transform(std::tuple<A&...> in, Out& out, F f, const pass_options& options = {}) {
  return std::apply([&](A&... a) { return detail::transform_all(out, f, options, a...); }, in);
}

/// out(i, ...) = f(i, ...).
template <detail::any_array Out, class F>
requires detail::takes_indices<F, std::make_index_sequence<detail::dimensions_of<Out>>> pass_statistics
generate(Out& out, F f, const pass_options& options = {}) {
  detail::by_indices_only<detail::dimensions_of<Out>, F> by_indices{f};
  return detail::transform_all(out, by_indices, options);
}
/// Every element becomes `value`.
template <detail::any_array Out>
pass_statistics fill(Out& out, const std::type_identity_t<detail::element_of<Out>>& value,
                     const pass_options& options = {}) {
  auto f = [value] { return value; };
  return detail::transform_all(out, f, options);
}

/// init op a(0, ...) op ...
template <detail::any_array A, class Value, class Op = std::plus<>>
requires(!detail::any_array<Value>) pass_result<Value> reduce(const A& a, Value init, Op op = {},
                                                              const pass_options& options = {}) {
  detail::same_value f;
  return detail::reduce_all(init, op, f, options, a);
}
/// init op f(a(0, ...)) op ...
template <detail::any_array A, class Value, class Op, class F>
requires(!detail::any_array<Value>) pass_result<Value> transform_reduce(const A& a, Value init, Op op, F f,
                                                                        const pass_options& options = {}) {
  return detail::reduce_all(init, op, f, options, a);
}
/// init op f(a(0, ...), b(0, ...)) op ...; by default the inner product.
template <detail::any_array A, detail::any_array B, class Value, class Op = std::plus<>, class F = std::multiplies<>>
pass_result<Value> transform_reduce(const A& a, const B& b, Value init, Op op = {}, F f = {},
                                    const pass_options& options = {}) {
  return detail::reduce_all(init, op, f, options, a, b);
}
/// Of any number of arrays.
template <detail::any_array... A, class Value, class Op, class F>
pass_result<Value> transform_reduce(std::tuple<A&...> in, Value init, Op op, F f, const pass_options& options = {}) {
  return std::apply([&](A&... a) { return detail::reduce_all(init, op, f, options, a...); }, in);
}

/// The smallest element and its coordinates, and of equal ones the first in row-major order.  Not-a-numbers are passed
/// over, unless there is nothing else.  Throws usage_error (errc::invalid_request) for an array without elements.
template <detail::any_array A, class Less = std::less<>>
auto min_element(const A& a, Less less = {}, const pass_options& options = {}) {
  return detail::first_by<detail::element_of<A>, detail::dimensions_of<A>>(a, less, options);
}
/// The largest, likewise.
template <detail::any_array A, class Less = std::less<>>
auto max_element(const A& a, Less less = {}, const pass_options& options = {}) {
  auto greater = [&](const auto& x, const auto& y) { return less(y, x); };
  return detail::first_by<detail::element_of<A>, detail::dimensions_of<A>>(a, greater, options);
}

/// b[i] = a[0] op ... op a[i] over the elements in row-major order, in the type of b.  b may be a.
/// With floating-point numbers each sum is rounded as a sum of pieces of 2^15 elements, and on
/// ranks of their parts; with pass_options::reproducible the result is that of one rank.  On several
/// ranks in two passes, of which the first reads only.
template <class T, class U, std::size_t N, class Op = std::plus<>>
pass_statistics inclusive_scan(const ooc_array<T, N>& a, ooc_array<U, N>& b, Op op = {},
                               const pass_options& options = {}) {
  return detail::scan_all<false, T, U>(a, b, std::optional<U>(), op, options);
}
/// b[i] = init op a[0] op ... op a[i-1], so b[0] = init; the rest is as above.
template <class T, class U, std::size_t N, class Op = std::plus<>>
pass_statistics exclusive_scan(const ooc_array<T, N>& a, ooc_array<U, N>& b, const std::type_identity_t<U>& init,
                               Op op = {}, const pass_options& options = {}) {
  return detail::scan_all<true, T, U>(a, b, std::optional<U>(init), op, options);
}

/// counts[k]: how many elements x have f(x) == k, for k < bins; the others are `outside`.
template <detail::any_array A, class F>
requires std::invocable < F&, const detail::element_of<A>
& > pass_result<histogram_counts> histogram(const A& a, std::size_t bins, F f, const pass_options& options = {}) {
  detail::span_request r{.verb = "histogram", .options = options};
  r.arrays = {detail::in_pass(a, true, false)};
  return detail::count_spans<detail::element_of<A>>(std::move(r), bins, f);
}

/// Bins of one width from lower up to upper, which is in none; neither is what is no number.  Exact where elements and
/// bounds are integers; else both are taken as doubles, and bounds that are not finite refused (usage_error,
/// errc::invalid_request).
template <detail::any_array A, class Bound>
requires std::is_arithmetic_v<Bound> && std::is_arithmetic_v<detail::element_of<A>> pass_result<histogram_counts>
histogram(const A& a, Bound lower, Bound upper, std::size_t bins, const pass_options& options = {}) {
  if constexpr (std::is_integral_v<Bound> && std::is_integral_v<detail::element_of<A>>)
    return histogram(a, bins, detail::integer_bins<detail::element_of<A>, Bound>(lower, upper, bins), options);
  return histogram(a, bins, detail::real_bins(static_cast<double>(lower), static_cast<double>(upper), bins), options);
}

}  // namespace ooc
