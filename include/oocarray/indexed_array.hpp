// The part of ooc_array<T, N> that reads, writes and changes many elements at once, by their indices.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "oocarray/array_base.hpp"
#include "oocarray/box.hpp"

namespace ooc {

/// An array whose elements are of type T and have N indices.
template <class T, std::size_t N>
class indexed_array : public array_base {
 public:
  using index_type = ooc::coordinates<N>;

  /// Copies the elements with these indices to `out`, out[i] that of indices[i].  An index is the
  /// element's number in row-major order, or its coordinates.  Indices may come in any order, and more
  /// than once.
  ///
  /// The calls of this class are for many touches that no loop could foresee.  They sort the indices.  What
  /// is in memory is copied from there.  Of blocks that are not, only the elements are transferred, in
  /// long lists, one message for each I/O node and list, and the blocks stay out; a block is loaded where
  /// half of its 4 KiB pages are asked for.  Sorting and copies take at most a quarter of the budget, at
  /// most 64 MiB, for the call; more indices are done in several batches, in the order of the list.
  ///
  /// As seen by threads a call is so many element accesses, in no particular order: another thread may
  /// touch other elements meanwhile, of the same blocks too.  `indices`, `out` and `values` may lie in
  /// arrays, but `out` must not overlap the elements that are asked for.  The calls are not collective:
  /// gather() sees what this process has written, and of other ranks at least what was there at the last
  /// sync(); what a rank scatters, others see after the next sync().
  ///
  /// All throw, before anything is transferred: std::out_of_range for an index outside the extents,
  /// naming array, index, its position and the extent; usage_error (errc::invalid_request) where there
  /// are not as many elements as indices, or the array is read-only, or options.owner_computes forbids
  /// to write the element; usage_error (errc::budget_too_small).  And io_error, naming array, node and
  /// cause, where elements cannot be read or written: `out` is then undefined.
  void gather(std::span<const std::size_t> indices, std::span<T> out) const {
    core().elements().gather(listed(indices), reinterpret_cast<std::byte*>(out.data()), out.size());
  }
  void gather(std::span<const index_type> indices, std::span<T> out) const {
    core().elements().gather(listed(indices), reinterpret_cast<std::byte*>(out.data()), out.size());
  }

  /// Gives the elements with these indices the values: values[i] to that of indices[i], and to one that
  /// is named more than once the last of them.  What is written to blocks in memory is modified, as by
  /// element writes; the rest has been acknowledged when the call returns, and is not durable.  Promises
  /// of overwrite() end for the blocks whose elements are written past memory.
  ///
  /// After an io_error each of the elements is old or new, and nothing says which: scatter them again.
  void scatter(std::span<const std::size_t> indices, std::span<const T> values) {
    core().elements().scatter(listed(indices), reinterpret_cast<const std::byte*>(values.data()), values.size());
  }
  void scatter(std::span<const index_type> indices, std::span<const T> values) {
    core().elements().scatter(listed(indices), reinterpret_cast<const std::byte*>(values.data()), values.size());
  }

  /// For each i in order, gives the element with indices[i] the value op(element, values[i]); an element
  /// that is named k times takes part k times.
  ///
  /// No other accumulate() of this process on this array comes between the reading and the writing of
  /// an element, so any number of threads may accumulate the same elements.  Element writes and
  /// scatter() may come between and are then lost, and so are accumulate() calls of other processes
  /// before the next sync().  `op` runs in the calling thread, on copies; it must not call
  /// accumulate() of the same array.
  ///
  /// After an io_error, or where `op` throws, each of the elements has none of its values, or those of
  /// some of the batches: do not repeat the call, but set the elements anew.
  template <class Op>
  requires std::is_invocable_r_v<T, Op&, const T&, const T&>
  void accumulate(std::span<const std::size_t> indices, std::span<const T> values, Op op) {
    accumulate_by(listed(indices), values, op);
  }
  template <class Op>
  requires std::is_invocable_r_v<T, Op&, const T&, const T&>
  void accumulate(std::span<const index_type> indices, std::span<const T> values, Op op) {
    accumulate_by(listed(indices), values, op);
  }

 protected:
  indexed_array() noexcept = default;
  using array_base::array_base;
  indexed_array(indexed_array&&) noexcept = default;
  indexed_array& operator=(indexed_array&&) noexcept = default;
  ~indexed_array() = default;

 private:
  static detail::element_indices listed(std::span<const std::size_t> indices) noexcept {
    return {indices.data(), indices.size(), 1};
  }
  static detail::element_indices listed(std::span<const index_type> indices) noexcept {
    static_assert(sizeof(index_type) == N * sizeof(std::size_t));
    return {reinterpret_cast<const std::size_t*>(indices.data()), indices.size(), N};
  }
  template <class Op>
  void accumulate_by(const detail::element_indices& indices, std::span<const T> values, Op& op) {
    const auto apply = [](void* context, std::byte* element, const std::byte* value) {
      T& e = *reinterpret_cast<T*>(element);
      e = (*static_cast<Op*>(context))(std::as_const(e), *reinterpret_cast<const T*>(value));
    };
    core().elements().accumulate(indices, reinterpret_cast<const std::byte*>(values.data()), values.size(),
                                 {apply, std::addressof(op)});
  }
};

}  // namespace ooc
