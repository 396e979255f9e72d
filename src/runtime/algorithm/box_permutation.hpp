// Turns a box in memory: packed row-major in the order of one array, to packed row-major in that of
// the other.
//
//     to(d) = from(s),   d[k] = s[permutation[k]]
//
// Dimensions that follow each other on both sides are one.  What is left are runs, where the last
// dimensions are the same, and else panels: of the dimensions that are contiguous on one side and
// on the other, for each index of the others.
//
// Threads: run() may be called by several at once, for different tasks.
#pragma once

#include <cstddef>
#include <vector>

#include "oocarray/detail/copy_engine.hpp"
#include "runtime/algorithm/box_plan.hpp"

namespace ooc::detail {

class box_permutation {
 public:
  /// The indices of one dimension of the target from `first` on, up to `last`.
  struct part {
    std::size_t dimension, first, last;
  };

  /// For a part of the target's box, which has these extents.
  box_permutation(const extent_list& extents, const part& p, const extent_list& permutation,
                  const element_kernel& kernel, std::size_t from_size, std::size_t to_size);

  std::size_t tasks() const noexcept { return outer_ * pieces_; }
  /// `from` and `to` are the memory of the whole boxes.
  void run(std::size_t task, const std::byte* from, std::byte* to) const;

 private:
  struct dimension {
    std::size_t extent, from_stride, to_stride;
  };

  void move_run(const std::byte* from, std::byte* to, std::size_t count) const;
  void move_panel(const std::byte* from, std::size_t from_stride, std::byte* to, std::size_t to_stride,
                  std::size_t rows, std::size_t columns) const;

  const element_kernel kernel_;
  const std::size_t from_size_, to_size_;
  std::size_t from_offset_ = 0, to_offset_ = 0;  ///< bytes before the part
  std::vector<dimension> others_;
  dimension last_{1, 1, 1};    ///< contiguous in the target
  dimension across_{1, 1, 1};  ///< contiguous in the source; of panels only
  bool panels_ = false;
  std::size_t columns_ = 1;  ///< of panels
  std::size_t outer_ = 1;    ///< indices of the others
  std::size_t pieces_ = 1;   ///< that each of them is cut into
};

}  // namespace ooc::detail
