// Sorting arrays larger than memory, and looking things up in sorted ones.
//
//     ooc::sort(a);                                    // ascending, in place
//     ooc::sort(a, std::greater<>{});                  // any strict weak order
//     ooc::sort(a, &record::time);                     // by a key
//     ooc::sort(a, std::greater<>{}, &record::time);   // both
//     ooc::sort(a, b);                                 // into b; a is only read
//     ooc::sort(a, b, &record::time, {.stable = true});
//     ooc::is_sorted(a);
//     std::vector<std::size_t> at = ooc::lower_bound(a, keys);
//
// sort() is a merge sort: it sorts *runs* that fill the memory that the budget has to spare, writes them to a
// temporary file in the store of the target, and merges all runs at once into the target.  So an array
// is read twice and written twice, up to about the square of the memory (docs/algorithms.md has the
// formulas); one that fits in memory is read and written once.  Bytes move past the blocks, in long
// requests: reading, sorting and writing go on at the same time.
//
// *Order.*  Integers, enumerations, bool, float and double, as elements or as keys, in the order of std::less
// or std::greater, are sorted by radix.  Everything else is sorted by comparisons.  In these two orders a NaN, also of
// long double, comes after all numbers, and -0.0 equals 0.0.  A comparison or key is called from several threads at
// once, and must touch no array.
//
// *Room.*  More than what fits in memory needs a temporary file of the size of the array, in the store of the
// target.  Its space is reserved before anything is read, so a full disk is an error at the beginning
// (io_error, ENOSPC) that leaves the target as it was.  The file has no name; it goes with the call, also
// when that throws, and after a death of the process when the store is opened the next time.
//
// *Which arrays.*  Of any layout and any file order with one dimension.  One of several dimensions is refused
// unless options.flat says that the sequence of its elements in row-major order is meant; to sort it, its file must
// then be in row-major order.  Arrays that other processes write to (options.shared) are refused
// (errc::invalid_request).
//
// *Ranks.*  Over arrays of a group sort() and is_sorted() are collective.  Each rank makes runs of the part of the
// source that lies where its rows of the target do, and merges what of all runs belongs to its rows: the result is that
// of one process, bit by bit where that is determined (by radix, or stable).  The temporary file is
// one for all ranks.  Afterwards every rank sees the result.  What one rank throws, all throw.  lower_bound() is not
// collective: each rank looks for its own keys, and sees what others have written after sync().
//
// *Errors.*  Throws usage_error (errc::budget_too_small), naming how much would do; (errc::busy) while a
// region of the target is pinned; (errc::invalid_request) for arrays of different sizes; io_error; and what
// comparison and key throw.  Until the target is first written, which is after the last run has been sorted,
// but for arrays so large that they are merged an even number of times, an error or a death leaves it
// as it was.  From then on it holds neither its old nor its new elements, and its file is marked
// (sort_options::mark; see open_unfinished).  `a` of sort(a, b) stays as it is.
//
// Threads: no other thread may use the arrays meanwhile.  On return data are acknowledged, and with
// options.mark durable; the target's blocks have left memory.
#pragma once

#include <cstddef>
#include <functional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "oocarray/detail/sort_program.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {
namespace detail {

template <class F, class T>
concept sort_key_of = std::is_copy_constructible_v<F> && std::is_invocable_v<const F&, const T&>;

template <class F, class T, class Key>
concept sort_comparison_of =
    std::is_copy_constructible_v<F> && std::is_invocable_r_v<bool, const F&, std::invoke_result_t<const Key&, const T&>,
                                                             std::invoke_result_t<const Key&, const T&>>;

template <class T, class Order>
sort_statistics sorted_by(const array_core& from, array_core& to, Order order, const sort_options& options) {
  const ordered_program<T, Order> program(std::move(order), options.stable);
  // The call may change which of its blocks are in memory, not the array itself.
  return run_sort(const_cast<array_core&>(from), to, program, options);
}

}  // namespace detail

/// In place, by a comparison of keys.
template <class T, std::size_t N, class Layout, class Compare, detail::sort_key_of<T> Key>
requires detail::sort_comparison_of<Compare, T, Key> sort_statistics sort(ooc_array<T, N, Layout>& a, Compare compare,
                                                                          Key key, const sort_options& options = {}) {
  return detail::sorted_by<T>(a.core(), a.core(), detail::order_of<T>(compare, key), options);
}
template <class T, std::size_t N, class Layout, class Compare>
requires detail::sort_comparison_of<Compare, T, detail::as_it_is> sort_statistics
sort(ooc_array<T, N, Layout>& a, Compare compare, const sort_options& options = {}) {
  return sort(a, compare, detail::as_it_is{}, options);
}
template <class T, std::size_t N, class Layout, detail::sort_key_of<T> Key>
sort_statistics sort(ooc_array<T, N, Layout>& a, Key key, const sort_options& options = {}) {
  return sort(a, std::less<>{}, key, options);
}
template <class T, std::size_t N, class Layout>
sort_statistics sort(ooc_array<T, N, Layout>& a, const sort_options& options = {}) {
  return sort(a, std::less<>{}, detail::as_it_is{}, options);
}

/// Into b, which has as many elements; `a` is only read.
template <class T, std::size_t N, class Layout, std::size_t M, class Other, class Compare, detail::sort_key_of<T> Key>
requires detail::sort_comparison_of<Compare, T, Key> sort_statistics sort(const ooc_array<T, N, Layout>& a,
                                                                          ooc_array<T, M, Other>& b, Compare compare,
                                                                          Key key, const sort_options& options = {}) {
  return detail::sorted_by<T>(a.core(), b.core(), detail::order_of<T>(compare, key), options);
}
template <class T, std::size_t N, class Layout, std::size_t M, class Other, class Compare>
requires detail::sort_comparison_of<Compare, T, detail::as_it_is> sort_statistics
sort(const ooc_array<T, N, Layout>& a, ooc_array<T, M, Other>& b, Compare compare, const sort_options& options = {}) {
  return sort(a, b, compare, detail::as_it_is{}, options);
}
template <class T, std::size_t N, class Layout, std::size_t M, class Other, detail::sort_key_of<T> Key>
sort_statistics sort(const ooc_array<T, N, Layout>& a, ooc_array<T, M, Other>& b, Key key,
                     const sort_options& options = {}) {
  return sort(a, b, std::less<>{}, key, options);
}
template <class T, std::size_t N, class Layout, std::size_t M, class Other>
sort_statistics sort(const ooc_array<T, N, Layout>& a, ooc_array<T, M, Other>& b, const sort_options& options = {}) {
  return sort(a, b, std::less<>{}, detail::as_it_is{}, options);
}

/// True where no element comes before the one before it, in the order in which sort() would sort.
/// Reads the array once at most, on ranks each its rows; modified blocks are written back before.
template <class T, std::size_t N, class Layout, class Compare = std::less<>, class Key = detail::as_it_is>
requires detail::sort_comparison_of<Compare, T, Key>
bool is_sorted(const ooc_array<T, N, Layout>& a, Compare compare = {}, Key key = {}, const sort_options& options = {}) {
  auto order = detail::order_of<T>(compare, key);
  const detail::ordered_program<T, decltype(order)> program(std::move(order), false);
  return detail::run_is_sorted(a.core(), program, options);
}

/// For each key, the index of the first element that does not come before it, or size() where all do, in
/// the order of the keys.  The array is sorted in the same order.  Keys that lie near each other share what
/// is read: at most the array once (and an element for each 64 KiB of it), at least 64 KiB for each key.
/// Takes 16 bytes for each key beside the budget.  options.progress counts bytes read, beside the most that so many
/// keys could need; keys that share what is read bring it to the end at once.
template <class T, std::size_t N, class Layout, std::ranges::contiguous_range Keys, class Compare = std::less<>,
          class Key = detail::as_it_is>
requires detail::sort_comparison_of<Compare, T, Key> std::vector<std::size_t> lower_bound(
    const ooc_array<T, N, Layout>& a, const Keys& keys, Compare compare = {}, Key key = {},
    const sort_options& options = {}) {
  auto order = detail::order_of<T>(compare, key);
  using order_type = decltype(order);
  static_assert(std::is_same_v<std::remove_cv_t<std::ranges::range_value_t<Keys>>, typename order_type::key_type>,
                "lower_bound(): the keys are of the type by which the array is sorted");
  detail::ordered_search<T, order_type> program(std::move(order),
                                                std::span(std::ranges::data(keys), std::ranges::size(keys)));
  detail::run_search(a.core(), program, options);
  return program.take_places();
}

}  // namespace ooc
