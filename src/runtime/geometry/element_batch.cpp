#include "runtime/geometry/element_batch.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ooc::detail {

void element_batch::assign(const element_indices& list, std::size_t first, std::size_t last) {
  const array_geometry& g = geometry_;
  const bool flat = list.numbers == 1;
  const bool image = g.tile().empty();  // memory is the row-major image
  first_ = first;
  elements_.clear();
  elements_.reserve(last - first);
  places_.clear();
  places_.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) {
    const std::size_t* const index = list.first + i * list.numbers;
    std::uint64_t place = 0;
    if (!flat) {
      place = g.memory_order().offset({index, list.numbers});
    } else if (image) {
      place = g.lead() + *index * g.element_size();
    } else {
      const coordinates c = g.coordinates_of(*index);
      place = g.memory_order().offset({c.data(), g.rank()});
    }
    elements_.push_back({place, i - first});
  }
  std::ranges::sort(elements_, [](const named_element& a, const named_element& b) {
    return a.place != b.place ? a.place < b.place : a.position < b.position;
  });
  for (const named_element& e : elements_)
    if (places_.empty() || places_.back() != e.place) places_.push_back(e.place);
}

void check_indices(const array_geometry& g, const element_indices& list, const std::string& call) {
  const auto refuse = [&](std::size_t i, const std::string& why) {
    throw std::out_of_range(call + ": the index " + to_string({list.first + i * list.numbers, list.numbers}) +
                            " at position " + std::to_string(i) + " of the indices is outside " + why);
  };
  const bool flat = list.numbers == 1;
  for (std::size_t i = 0; i < list.count; ++i) {
    const std::size_t* const index = list.first + i * list.numbers;
    if (flat) {
      if (*index >= g.elements()) refuse(i, "the " + std::to_string(g.elements()) + " elements of the array");
      continue;
    }
    for (std::size_t k = 0; k < g.rank(); ++k)
      if (index[k] >= g.extents()[k])
        refuse(i, "the extent " + std::to_string(g.extents()[k]) + " of dimension " + std::to_string(k));
  }
}

}  // namespace ooc::detail
