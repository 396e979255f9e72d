#include "runtime/algorithm/box_permutation.hpp"

#include <algorithm>
#include <cstring>

namespace ooc::detail {
namespace {

constexpr std::size_t run_of_task = 1 << 16;  // elements, of what is contiguous on both sides
constexpr std::size_t panel_side = 64;        // rows and columns that fit into the first cache
constexpr std::size_t rows_of_task = 4096;    // of panels

}  // namespace

box_permutation::box_permutation(const extent_list& extents, const part& p, const extent_list& permutation,
                                 const element_kernel& kernel, std::size_t from_size, std::size_t to_size)
    : kernel_(kernel), from_size_(from_size), to_size_(to_size) {
  const std::size_t n = extents.size();
  extent_list from_extents(n), from_strides(n);
  for (std::size_t k = 0; k < n; ++k) from_extents[permutation[k]] = extents[k];
  for (std::size_t j = n, stride = 1; j-- > 0;) {
    from_strides[j] = stride;
    stride *= from_extents[j];
  }
  std::vector<dimension> all;  // the last one first
  for (std::size_t k = n, stride = 1; k-- > 0;) {
    dimension d{extents[k], from_strides[permutation[k]], stride};
    stride *= d.extent;
    if (k == p.dimension) {
      from_offset_ = p.first * d.from_stride * from_size_;
      to_offset_ = p.first * d.to_stride * to_size_;
      d.extent = p.last - p.first;
    }
    if (d.extent == 1) continue;
    if (!all.empty() && d.from_stride == all.back().from_stride * all.back().extent)
      all.back().extent *= d.extent;
    else
      all.push_back(d);
  }
  if (!all.empty()) {
    last_ = all.front();
    all.erase(all.begin());
  }
  panels_ = last_.from_stride != 1;
  if (panels_) {
    const auto contiguous = std::find_if(all.begin(), all.end(), [](const dimension& d) { return d.from_stride == 1; });
    if (contiguous != all.end()) {  // else the part has one index of it
      across_ = *contiguous;
      all.erase(contiguous);
    }
    columns_ = (across_.extent + panel_side - 1) / panel_side;
    pieces_ = columns_ * ((last_.extent + rows_of_task - 1) / rows_of_task);
  } else {
    pieces_ = (last_.extent + run_of_task - 1) / run_of_task;
  }
  others_ = std::move(all);
  for (const dimension& d : others_) outer_ *= d.extent;
}

void box_permutation::run(std::size_t task, const std::byte* from, std::byte* to) const {
  std::size_t index = task / pieces_;
  from += from_offset_;
  to += to_offset_;
  for (const dimension& d : others_) {
    const std::size_t i = index % d.extent;
    index /= d.extent;
    from += i * d.from_stride * from_size_;
    to += i * d.to_stride * to_size_;
  }
  const std::size_t piece = task % pieces_;
  if (!panels_) {
    const std::size_t first = piece * run_of_task;
    move_run(from + first * from_size_, to + first * to_size_, std::min(run_of_task, last_.extent - first));
    return;
  }
  const std::size_t first = piece % columns_ * panel_side;
  const std::size_t columns = std::min(panel_side, across_.extent - first);
  from += first * from_size_;
  to += first * across_.to_stride * to_size_;
  const std::size_t begin = piece / columns_ * rows_of_task;
  const std::size_t end = std::min(begin + rows_of_task, last_.extent);
  for (std::size_t r = begin; r < end; r += panel_side)
    move_panel(from + r * last_.from_stride * from_size_, last_.from_stride, to + r * to_size_, across_.to_stride,
               std::min(panel_side, end - r), columns);
}

void box_permutation::move_run(const std::byte* from, std::byte* to, std::size_t count) const {
  if (kernel_.run)
    kernel_.run(from, to, count);
  else
    std::memcpy(to, from, count * to_size_);
}

void box_permutation::move_panel(const std::byte* from, std::size_t from_stride, std::byte* to, std::size_t to_stride,
                                 std::size_t rows, std::size_t columns) const {
  if (kernel_.panel) return kernel_.panel(from, from_stride, to, to_stride, rows, columns);
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(to + (c * to_stride + r) * to_size_, from + (r * from_stride + c) * to_size_, to_size_);
}

}  // namespace ooc::detail
