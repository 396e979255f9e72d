#include "runtime/algorithm/span_order.hpp"

#include <algorithm>

namespace ooc::detail {
namespace {

constexpr std::size_t least_elements = 1 << 12;  // of a piece
constexpr std::size_t pieces_of_thread = 8;

}  // namespace

span_order::span_order(const span_request& r, std::size_t first, std::size_t last, unsigned threads)
    : in_rows_(r.indices) {
  const std::vector<span_array>& arrays = r.arrays;
  const bool whole = r.rule == piece_rule::whole;
  const array_facts& shape = arrays.front().core->facts();
  extents_.assign(shape.extents.begin(), shape.extents.end());
  const std::size_t n = extents_.size();
  std::size_t row = 1;  // elements
  for (std::size_t k = 1; k < n; ++k) row *= extents_[k];

  std::size_t leader = arrays.size();
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const array_facts& f = arrays[a].core->facts();
    place p{f.base, arrays[a].element_size, {f.tile.begin(), f.tile.end()}, extent_list(n), extent_list(n)};
    std::size_t in = p.element_size, out = f.block_bytes;
    for (std::size_t k = n; k-- > 0;) {
      p.stride[k] = in;
      p.grid_stride[k] = out;
      in *= p.tile.empty() ? extents_[k] : p.tile[k];
      out *= p.tile.empty() ? 1 : (f.max_extents[k] + p.tile[k] - 1) / p.tile[k];
    }
    if (!p.tile.empty()) {
      tiled_ = true;
      if (leader == arrays.size() || (arrays[a].written && !arrays[leader].written)) leader = a;
    }
    places_.push_back(std::move(p));
  }

  if (!tiled_) {
    const std::size_t all = row * extents_[0];
    first_ = first * row;
    last_ = last * row;
    piece_ = elements_of_piece;
    if (r.rule == piece_rule::by_threads)
      piece_ = std::clamp((last_ - first_) / (threads * pieces_of_thread), least_elements, elements_of_piece);
    if (whole) {  // from the first that begins in the rows, to the end of the last that does
      first_ = (first_ + piece_ - 1) / piece_ * piece_;
      last_ = std::min((last_ + piece_ - 1) / piece_ * piece_, all);
    }
    first_piece_ = first_ / piece_;
    pieces_ = first_ < last_ ? (last_ + piece_ - 1) / piece_ - first_piece_ : 0;
    return;
  }

  edges_ = places_[leader].tile;
  std::size_t most_rows = 0;
  for (std::size_t a = 0; a < places_.size(); ++a) {
    same_tiles_ = same_tiles_ && places_[a].tile == edges_;
    if (!places_[a].tile.empty()) most_rows = std::max(most_rows, places_[a].tile[0]);
  }
  if (!same_tiles_)
    for (std::size_t a = 0; a < places_.size(); ++a)
      if (places_[a].tile != edges_)
        memory_bytes_ +=
            std::min(most_rows, extents_[0]) * row * places_[a].element_size + arrays[a].core->facts().block_bytes;
  extent_list lower(n, 0), upper = extents_;
  lower[0] = first;
  upper[0] = last;
  if (whole) {
    lower[0] = std::min((first + edges_[0] - 1) / edges_[0] * edges_[0], extents_[0]);
    upper[0] = std::min((last + edges_[0] - 1) / edges_[0] * edges_[0], extents_[0]);
  }
  if (lower[0] >= upper[0]) return;
  grid_ = box_grid(lower, upper, edges_);
  pieces_ = grid_.size();
}

std::size_t span_order::offset(const place& p, const extent_list& at) noexcept {
  std::size_t bytes = 0;
  for (std::size_t k = 0; k < at.size(); ++k)
    bytes +=
        p.tile.empty() ? at[k] * p.stride[k] : at[k] / p.tile[k] * p.grid_stride[k] + at[k] % p.tile[k] * p.stride[k];
  return bytes;
}

void span_order::interval(std::size_t piece, std::size_t& first, std::size_t& last) const noexcept {
  first = std::max(first_, (first_piece_ + piece) * piece_);
  last = std::min(last_, (first_piece_ + piece + 1) * piece_);
}

std::size_t span_order::elements(std::size_t piece) const {
  if (!tiled_) {
    std::size_t first = 0, last = 0;
    interval(piece, first, last);
    return last - first;
  }
  extent_list lower, upper;
  grid_.box(piece, lower, upper);
  std::size_t n = 1;
  for (std::size_t k = 0; k < lower.size(); ++k) n *= upper[k] - lower[k];
  return n;
}

void span_order::for_each_run_of_interval(std::size_t piece, const use_run& use) const {
  std::vector<std::byte*> p(places_.size());
  std::size_t first = 0, last = 0;
  interval(piece, first, last);
  for (std::size_t a = 0; a < p.size(); ++a) p[a] = places_[a].base + first * places_[a].element_size;
  if (!in_rows_) return use(p.data(), last - first, nullptr);
  const std::size_t n = extents_.size();
  extent_list at(n);
  while (first < last) {
    for (std::size_t k = n, rest = first; k-- > 0; rest /= extents_[k]) at[k] = rest % extents_[k];
    const std::size_t count = std::min(extents_[n - 1] - at[n - 1], last - first);
    use(p.data(), count, at.data());
    first += count;
    for (std::size_t a = 0; a < p.size(); ++a) p[a] += count * places_[a].element_size;
  }
}

void span_order::for_each_run(std::size_t piece, const use_run& use) const {
  if (!tiled_) return for_each_run_of_interval(piece, use);
  std::vector<std::byte*> p(places_.size());
  extent_list lower, upper;
  grid_.box(piece, lower, upper);
  const auto find = [&](const extent_list& at) {
    for (std::size_t a = 0; a < p.size(); ++a) p[a] = places_[a].base + offset(places_[a], at);
  };
  const std::size_t n = lower.size();
  bool one_run = same_tiles_ && !in_rows_;
  for (std::size_t k = 1; k < n; ++k) one_run = one_run && upper[k] - lower[k] == edges_[k];
  if (one_run) {
    find(lower);
    return use(p.data(), elements(piece), nullptr);
  }
  for (extent_list at = lower;;) {
    for (at[n - 1] = lower[n - 1]; at[n - 1] < upper[n - 1];) {
      std::size_t end = upper[n - 1];
      for (const place& q : places_)
        if (!q.tile.empty()) end = std::min(end, (at[n - 1] / q.tile[n - 1] + 1) * q.tile[n - 1]);
      find(at);
      use(p.data(), end - at[n - 1], at.data());
      at[n - 1] = end;
    }
    std::size_t k = n - 1;
    while (k-- > 0) {
      if (++at[k] < upper[k]) break;
      at[k] = lower[k];
    }
    if (k == static_cast<std::size_t>(-1)) return;
  }
}

}  // namespace ooc::detail
