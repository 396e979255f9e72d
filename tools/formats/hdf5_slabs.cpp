#include "formats/hdf5_slabs.hpp"

#include <algorithm>
#include <cerrno>

#include "oocarray/error.hpp"

namespace ooc::tool::hdf5 {

handle space_of(const extents& n) {
  const counts dims(n.begin(), n.end());
  return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
}

slab box_of(const extents& lower, const extents& upper) {
  slab s{{lower.begin(), lower.end()}, counts(lower.size(), 1), counts(lower.size(), 1), {}};
  for (std::size_t d = 0; d < lower.size(); ++d) s.block.push_back(upper[d] - lower[d]);
  return s;
}

void select(hid_t space, H5S_seloper_t how, const slab& s) {
  if (H5Sselect_hyperslab(space, how, s.start.data(), s.stride.data(), s.count.data(), s.block.data()) < 0)
    throw io_error::in_full({EIO, std::generic_category()}, "a selection cannot be computed: " + last_error());
}

std::uint64_t points(hid_t space) {
  return static_cast<std::uint64_t>(std::max<hssize_t>(0, H5Sget_select_npoints(space)));
}

slabs blocks_of(hid_t space) {
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
  const auto n =
      static_cast<std::size_t>(std::max<hssize_t>(0, points(space) > 0 ? H5Sget_select_hyper_nblocks(space) : 0));
  counts corners(n * 2 * rank);
  if (n > 0) H5Sget_select_hyper_blocklist(space, 0, n, corners.data());
  slabs all;
  for (auto at = corners.begin(); at != corners.end(); at += static_cast<std::ptrdiff_t>(2 * rank)) {
    const auto middle = at + static_cast<std::ptrdiff_t>(rank);
    extents upper(middle, middle + static_cast<std::ptrdiff_t>(rank));
    for (std::uint64_t& u : upper) ++u;
    all.push_back(box_of({at, middle}, upper));
  }
  return all;
}

std::optional<slab> slab_of(hid_t space) {
  const auto rank = static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space)));
  slab s{counts(rank), counts(rank, 1), counts(rank, 1), counts(rank, 1)};
  if (H5Sget_select_type(space) == H5S_SEL_ALL) {
    H5Sget_simple_extent_dims(space, s.block.data(), nullptr);
    s.whole = true;
    return s;
  }
  if (H5Sget_select_type(space) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0) return {};
  H5Sget_regular_hyperslab(space, s.start.data(), s.stride.data(), s.count.data(), s.block.data());
  for (std::size_t d = 0; d < rank; ++d)
    if (s.count[d] == H5S_UNLIMITED || s.block[d] == H5S_UNLIMITED) s.endless = static_cast<int>(d);
  return s;
}

slabs inside(slab s, const extents& n, hsize_t from) {
  if (s.endless < 0) return {std::move(s)};
  const auto d = static_cast<std::size_t>(s.endless);
  const bool by_count = s.by_count();
  s.endless = -1;
  slabs all;
  const auto add = [&](hsize_t start, bool one, hsize_t block) {
    if (start >= n[d] || block == 0) return;
    slab part = s;
    part.start[d] = start;
    part.count[d] = one ? 1 : (n[d] - start + s.stride[d] - 1) / s.stride[d];
    part.block[d] = block;
    all.push_back(std::move(part));
  };
  if (!by_count) {
    const hsize_t start = s.start[d] + from;
    add(start, true, start < n[d] ? n[d] - start : 0);
    return all;
  }
  const hsize_t first = from / s.block[d], rest = from % s.block[d];
  if (rest > 0) add(s.start[d] + first * s.stride[d] + rest, true, s.block[d] - rest);
  add(s.start[d] + (first + (rest > 0 ? 1 : 0)) * s.stride[d], false, s.block[d]);
  return all;
}

std::uint64_t elements_of(const slab& s) {
  std::uint64_t n = 1;
  for (std::size_t d = 0; d < s.start.size(); ++d) n *= s.count[d] * s.block[d];
  return n;
}

hsize_t rows_within(const slab& s, hsize_t extent) {
  const auto d = static_cast<std::size_t>(s.endless);
  const hsize_t left = extent > s.start[d] ? extent - s.start[d] : 0;
  if (!s.by_count()) return left;
  return left / s.stride[d] * s.block[d] + std::min(left % s.stride[d], s.block[d]);
}

slabs range(const extents& n, std::uint64_t first, std::uint64_t last) {
  slabs all;
  while (first < last) {
    std::size_t d = n.size();
    std::uint64_t unit = 1;  // elements of one step in dimension d - 1
    while (d > 1 && first % (unit * n[d - 1]) == 0 && first + unit * n[d - 1] <= last) unit *= n[--d];
    slab s = box_of(extents(n.size(), 0), extents(n.size(), 1));
    std::uint64_t rest = first;
    for (std::size_t k = n.size(); k-- > 0; rest /= n[k]) s.start[k] = rest % n[k];
    for (std::size_t k = d; k < n.size(); ++k) s.block[k] = n[k];
    s.block[d - 1] = std::min<std::uint64_t>((last - first) / unit, n[d - 1] - s.start[d - 1]);
    first += s.block[d - 1] * unit;
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace ooc::tool::hdf5
