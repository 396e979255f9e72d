// The functions that the templates call to reach elements by lists of indices: gather(), scatter() and
// accumulate().
//
// Owner: made for one call by array_core::elements(), and refers to the array.  Threads: any.
#pragma once

#include <cstddef>

namespace ooc::detail {

class shared_array;

/// Elements by their indices.
struct element_indices {
  const std::size_t* first;  ///< count * numbers of them
  std::size_t count;         ///< of indices
  std::size_t numbers;       ///< in an index: 1, the element's number in row-major order; or the rank
};

/// The operation of accumulate() on an element, given the value that the caller has for it.
struct element_operation {
  void (*apply)(void* context, std::byte* element, const std::byte* value);
  void* context;
};

/// `elements`: the room in memory, or the values there.  All throw as ooc_array's functions say.
class indexed_elements {
 public:
  explicit indexed_elements(shared_array& array) noexcept : array_(array) {}

  void gather(const element_indices& from, std::byte* to, std::size_t elements) const;
  void scatter(const element_indices& to, const std::byte* from, std::size_t elements) const;
  void accumulate(const element_indices& to, const std::byte* from, std::size_t elements,
                  const element_operation& op) const;

 private:
  shared_array& array_;
};

}  // namespace ooc::detail
