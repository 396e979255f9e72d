#include "storage/chunked/chunk_grid.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace ooc::storage {
namespace {

std::uint64_t product(const std::vector<std::uint64_t>& n) {
  std::uint64_t all = 1;
  for (const std::uint64_t e : n) all *= e;
  return all;
}

/// The next index of the box [lower, upper) in row-major order; false after the last one.  `dims`: the last one that
/// moves, and one more.
bool advance(std::vector<std::uint64_t>& at, const std::vector<std::uint64_t>& lower,
             const std::vector<std::uint64_t>& upper, std::size_t dims) {
  for (std::size_t d = dims; d-- > 0;) {
    if (++at[d] < upper[d]) return true;
    at[d] = lower[d];
  }
  return false;
}

}  // namespace

chunk_grid::chunk_grid(std::vector<std::uint64_t> extents, std::vector<std::uint64_t> chunk, std::uint32_t element_size)
    : extents_(std::move(extents)), chunk_(std::move(chunk)), element_size_(element_size) {
  extents_.back() *= element_size;
  chunk_.back() *= element_size;
  for (std::size_t d = 0; d < extents_.size(); ++d) grid_.push_back((extents_[d] + chunk_[d] - 1) / chunk_[d]);
}

std::uint64_t chunk_grid::chunks() const noexcept { return product(grid_); }
std::uint64_t chunk_grid::chunk_bytes() const noexcept { return product(chunk_); }

std::uint64_t chunk_grid::bytes_in_array(std::uint64_t chunk) const {
  const index at = index_of(chunk);
  std::uint64_t bytes = 1;
  for (std::size_t d = 0; d < at.size(); ++d) bytes *= std::min(chunk_[d], extents_[d] - at[d] * chunk_[d]);
  return bytes;
}

std::uint64_t chunk_grid::chunks_in_use_together() const noexcept {
  // Along the first dimension in which a chunk has more than one index the walk comes back to it.
  std::size_t d = 0;
  while (d + 1 < chunk_.size() && chunk_[d] == 1) ++d;
  std::uint64_t all = 1;
  for (++d; d < grid_.size(); ++d) all *= grid_[d];
  return all;
}

std::vector<std::uint64_t> chunk_grid::index_of(std::uint64_t chunk) const {
  index at(grid_.size());
  for (std::size_t d = at.size(); d-- > 0; chunk /= grid_[d]) at[d] = chunk % grid_[d];
  return at;
}

std::string chunk_grid::place_of(std::uint64_t chunk) const {
  const index at = index_of(chunk);
  std::string text;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::uint64_t unit = d + 1 == at.size() ? element_size_ : 1;
    text += (d > 0 ? ", " : "") + std::to_string(at[d] * (chunk_[d] / unit));
  }
  return "[" + text + "]";
}

chunk_grid::index chunk_grid::coordinates(std::uint64_t byte) const {
  index at(extents_.size());
  for (std::size_t d = at.size(); d-- > 0; byte /= extents_[d]) at[d] = byte % extents_[d];
  return at;
}

void chunk_grid::for_each_chunk(std::uint64_t begin, std::uint64_t end,
                                const std::function<void(std::uint64_t)>& f) const {
  if (begin >= end) return;
  // Up to the first dimension in which both ends differ the bytes have one index; behind it, any.
  const index first = coordinates(begin), last = coordinates(end - 1);
  index lower(grid_.size()), upper(grid_);
  for (std::size_t d = 0; d < grid_.size(); ++d) {
    lower[d] = first[d] / chunk_[d];
    upper[d] = last[d] / chunk_[d] + 1;
    if (first[d] != last[d]) break;
  }
  index at = lower;
  do {
    std::uint64_t chunk = 0;
    for (std::size_t d = 0; d < grid_.size(); ++d) chunk = chunk * grid_[d] + at[d];
    bool has_any = false;
    for_each_piece(chunk, begin, end, [&](const piece&) { return !(has_any = true); });
    if (has_any) f(chunk);
  } while (advance(at, lower, upper, at.size()));
}

void chunk_grid::for_each_piece(std::uint64_t chunk, std::uint64_t begin, std::uint64_t end,
                                const std::function<bool(const piece&)>& f) const {
  if (begin >= end) return;
  const std::size_t dims = extents_.size(), inner = dims - 1;
  const index first = coordinates(begin), last = coordinates(end - 1);
  index origin(dims), lower(dims), upper(dims);
  for (std::size_t d = dims; d-- > 0; chunk /= grid_[d]) {
    origin[d] = chunk % grid_[d] * chunk_[d];
    lower[d] = origin[d];
    upper[d] = std::min(extents_[d], origin[d] + chunk_[d]);
  }
  for (std::size_t d = 0; d < inner; ++d) {
    lower[d] = std::max(lower[d], first[d]);
    upper[d] = std::min(upper[d], last[d] + 1);
    if (lower[d] >= upper[d]) return;
    if (first[d] != last[d]) break;
  }
  index at = lower;
  do {
    std::uint64_t in_array = 0, in_chunk = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      in_array = in_array * extents_[d] + at[d];
      in_chunk = in_chunk * chunk_[d] + (at[d] - origin[d]);
    }
    const std::uint64_t from = std::max(begin, in_array), to = std::min(end, in_array + (upper[inner] - lower[inner]));
    if (from < to && !f({in_chunk + (from - in_array), from, to - from})) return;
  } while (advance(at, lower, upper, inner));
}

}  // namespace ooc::storage
