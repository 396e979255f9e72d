// A part of a list of indices, in the order in which the elements lie in memory.
//
// gather(), scatter() and accumulate() take indices in any order, the same ones more than once.  A
// batch has a *place* for each element among them: the offset of its first byte in the array's
// memory.  Places ascend, and each is there once; who names an element, and in which order, is
// for_each()'s to say.
//
// Not for several threads at once.  The geometry must outlive the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oocarray/detail/array_core.hpp"
#include "runtime/geometry/array_geometry.hpp"

namespace ooc::detail {

class element_batch {
 public:
  /// Memory that a batch takes for each index.
  static constexpr std::size_t bytes_per_index = 24;

  explicit element_batch(const array_geometry& g) : geometry_(g) {}

  /// The indices first <= i < last of the list, which are within the array's extents.
  void assign(const element_indices& list, std::size_t first, std::size_t last);

  std::span<const std::uint64_t> places() const noexcept { return places_; }

  /// Calls f(position in the list, number of the place) for every index: in the order of places, and
  /// those of one element in the order of the list.
  template <class F>
  void for_each(F&& f) const {
    std::size_t number = 0;
    for (const named_element& e : elements_) {
      if (places_[number] != e.place) ++number;
      f(first_ + e.position, number);
    }
  }

 private:
  struct named_element {
    std::uint64_t place;
    std::uint64_t position;  ///< from first_ on
  };

  const array_geometry& geometry_;
  std::size_t first_ = 0;
  std::vector<named_element> elements_;
  std::vector<std::uint64_t> places_;
};

/// Throws std::out_of_range for the first index of the list that is not within the extents, naming
/// array, call, position and extent.
void check_indices(const array_geometry& g, const element_indices& list, const std::string& call);

}  // namespace ooc::detail
