#include "runtime/algorithm/box_plan.hpp"

#include <algorithm>
#include <optional>

namespace ooc::detail {
namespace {

constexpr std::uint64_t chunk = 4096;        // what nodes read and write at least
constexpr std::uint64_t long_run = 2 << 20;  // longer ones are transferred in pieces
constexpr std::uint64_t enough = 8 << 20;    // bytes of a box, where runs are long

std::uint64_t product(const extent_list& l) {
  std::uint64_t n = 1;
  for (const std::size_t e : l) n *= e;
  return n;
}

/// [k] of an array's dimension -> of the copy's.
extent_list inverse(const extent_list& dimension) {
  extent_list of(dimension.size());
  for (std::size_t k = 0; k < dimension.size(); ++k) of[dimension[k]] = k;
  return of;
}

/// The dimension of the copy whose edge makes the runs of a side longer; nothing where they are as
/// long as can be.
std::optional<std::size_t> next_to_grow(const copy_side& s, const extent_list& region, const extent_list& edges) {
  const extent_list of = inverse(s.dimension);
  if (!s.tile.empty())
    for (std::size_t j = of.size(); j-- > 0;)
      if (edges[of[j]] < std::min(s.tile[j], region[of[j]])) return of[j];
  for (std::size_t j = of.size(); j-- > 0;)
    if (edges[of[j]] < region[of[j]]) return of[j];
  return std::nullopt;
}

}  // namespace

std::uint64_t copy_side::run_bytes(const extent_list& edges) const {
  const extent_list of = inverse(dimension);
  std::uint64_t run = element_size;
  bool whole_tiles = true;
  for (std::size_t j = of.size(); j-- > 0;) {
    const std::size_t along = tile.empty() ? extents[j] : tile[j];
    run *= std::min(edges[of[j]], along);
    if (edges[of[j]] < std::min(along, extents[j])) {
      whole_tiles = false;
      break;
    }
  }
  if (tile.empty() || !whole_tiles) return run;
  for (std::size_t j = of.size(); j-- > 0;) {
    run *= std::max<std::size_t>(edges[of[j]] / tile[j], 1);
    if (edges[of[j]] < extents[j]) break;
  }
  return run;
}

extent_list choose_edges(const extent_list& region, const copy_side& from, const copy_side& to,
                         std::uint64_t most_elements, bool square) {
  const std::size_t n = region.size();
  extent_list edges(n, 1), unit(n, 1);
  for (const copy_side* s : {&from, &to})
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t j = s->dimension[k];
      const std::size_t of_side = !s->tile.empty() ? s->tile[j]
                                  : j + 1 == n     ? std::max<std::size_t>(chunk / s->element_size, 1)
                                                   : 1;
      unit[k] = std::max(unit[k], of_side);
    }
  if (square) unit.assign(n, *std::max_element(unit.begin(), unit.end()));

  // The edge of dimension k grows by a step, or less where memory does not allow more.
  const auto grow = [&](std::size_t k) {
    const std::size_t now = edges[k];
    const std::size_t step = now < unit[k] ? unit[k] : now + unit[k] * std::max<std::size_t>(now / unit[k] / 8, 1);
    for (std::size_t wanted = std::min(step, region[k]); wanted > now;
         wanted = std::min(wanted - 1, now < unit[k] ? wanted / 2 : now)) {
      extent_list larger = edges;
      if (square)
        larger.assign(n, wanted);
      else
        larger[k] = wanted;
      if (product(larger) > most_elements) continue;
      edges = larger;
      return true;
    }
    return false;
  };
  for (;;) {
    const std::uint64_t run_from = from.run_bytes(edges), run_to = to.run_bytes(edges);
    const std::uint64_t bytes = product(edges) * std::max(from.element_size, to.element_size);
    if (bytes >= enough && std::min(run_from, run_to) >= long_run) break;
    const bool from_first = run_from <= run_to;
    auto k = next_to_grow(from_first ? from : to, region, edges);
    if (!k) k = next_to_grow(from_first ? to : from, region, edges);
    if (!k || !grow(*k)) break;
  }

  // As many boxes, all about as large.
  for (std::size_t k = 0; k < n && !square; ++k) {
    if (edges[k] <= unit[k] || edges[k] >= region[k]) continue;
    const std::size_t boxes = (region[k] + edges[k] - 1) / edges[k];
    const std::size_t even = (region[k] + boxes - 1) / boxes;
    edges[k] = std::min(edges[k], (even + unit[k] - 1) / unit[k] * unit[k]);
  }
  return edges;
}

box_grid::box_grid(extent_list lower, extent_list upper, extent_list edges)
    : lower_(std::move(lower)), upper_(std::move(upper)), edges_(std::move(edges)), size_(1) {
  for (std::size_t k = 0; k < lower_.size(); ++k) {
    counts_.push_back(lower_[k] < upper_[k] ? (upper_[k] + edges_[k] - 1) / edges_[k] - lower_[k] / edges_[k] : 0);
    size_ *= counts_[k];
  }
}

void box_grid::box(std::size_t number, extent_list& lower, extent_list& upper) const {
  lower.resize(counts_.size());
  upper.resize(counts_.size());
  for (std::size_t k = counts_.size(); k-- > 0;) {
    const std::size_t cell = lower_[k] / edges_[k] + number % counts_[k];
    number /= counts_[k];
    lower[k] = std::max(lower_[k], cell * edges_[k]);
    upper[k] = std::min(upper_[k], (cell + 1) * edges_[k]);
  }
}

}  // namespace ooc::detail
