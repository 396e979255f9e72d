// The part of ooc::sort() and its relatives that is compiled once: sorting without its types.
//
// The engine knows elements as bytes: which run is read, sorted and written when, which parts of the runs are
// merged next, by which thread, and where the result goes.  The order, which it cannot know, is a
// sort_program, made by the template (detail/sort_program.hpp).
//
// Threads: run_sort() and the others are called by one thread; they call the functions of the program from
// several at once.  What these throw comes out of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc {

struct sort_options {
  /// Elements of which neither comes before the other keep their order.  Radix sorting (sort.hpp) does
  /// that always; with it, comparisons take half as much memory again for each run.
  bool stable = false;
  /// An array of several dimensions is sorted as the sequence of its elements in row-major order.
  /// Without it such an array is refused.
  bool flat = false;
  unsigned threads = 0;                                     ///< see pass_options
  bool mark = true;                                         ///< the same
  std::uint64_t memory = 0;                                 ///< 0: all that the budget can spare
  std::function<bool(const pass_progress&)> progress = {};  ///< see pass_options
  bool plan = false;                                        ///< the same
};

struct sort_statistics : pass_statistics {
  std::uint64_t runs = 0;             ///< sorted in memory, of all ranks; 1: all of it at once
  std::uint64_t merged = 0;           ///< most runs that were merged at once
  std::uint64_t temporary_bytes = 0;  ///< taken in the store meanwhile, by all ranks
};

namespace detail {

/// Sorted elements in memory.
struct sorted_window {
  const std::byte* first = nullptr;
  std::size_t count = 0;
  bool more = false;  ///< the run goes on after it
};

class sort_program {
 public:
  virtual ~sort_program() = default;

  virtual std::size_t element_size() const noexcept = 0;
  /// Sorting a run needs as much memory again, given as scratch.
  virtual bool needs_scratch() const noexcept = 0;
  /// Sorting a run allocates half as much memory again by itself.
  virtual bool allocates() const noexcept = 0;

  /// Element x comes before element y, whatever their places.
  virtual bool less(const std::byte* x, const std::byte* y) const = 0;
  /// Sorts; true: the result is in `scratch`.
  virtual bool sort_run(std::byte* elements, std::size_t count, std::byte* scratch) const = 0;
  /// Of the windows that go on, one whose last element no other one's comes before: the first such.
  /// All are of at least one element.  As many as there are windows: none goes on.
  virtual std::size_t least_last(std::span<const sorted_window> w) const = 0;
  /// How many elements of each window come before element x of window `of` where all are merged.  Equal ones
  /// stay in the order of the windows.
  virtual void before(std::span<const sorted_window> w, std::size_t of, std::size_t x, std::size_t* counts) const = 0;
  virtual void merge(std::span<const sorted_window> w, std::byte* to) const = 0;
  /// How many elements there are before one that is less than the one before it.
  virtual std::size_t sorted_until(const std::byte* elements, std::size_t count) const = 0;
};

/// Keys that are looked for, in ascending order.
class search_program {
 public:
  virtual ~search_program() = default;
  virtual std::size_t element_size() const noexcept = 0;
  virtual std::size_t keys() const noexcept = 0;
  /// The first of the keys [first, last) before which the element comes not: it and those before it
  /// are to be found at or before the element.
  virtual std::size_t keys_after(std::size_t first, std::size_t last, const std::byte* element) const = 0;
  /// Key k's place among the elements, the first of which is element `base` of the array.
  virtual void place(std::size_t k, const std::byte* elements, std::size_t count, std::uint64_t base) = 0;
};

sort_statistics run_sort(array_core& from, array_core& to, const sort_program& program, const sort_options& options);
bool run_is_sorted(const array_core& a, const sort_program& program, const sort_options& options);
void run_search(const array_core& a, search_program& program, const sort_options& options);

}  // namespace detail
}  // namespace ooc
