// Boxes drawn at random, their elements, and how a random program describes its array.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "oocarray/ooc_array.hpp"
#include "support/random_seed.hpp"

namespace ooc::testing {

/// The place of an element in a row-major vector.
template <std::size_t N>
std::size_t linear_index(const coordinates<N>& c, const coordinates<N>& extents) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < N; ++k) n = n * extents[k] + c[k];
  return n;
}

/// At most 4000 elements; in one dimension `longest`.  Each extent is 1 in a quarter of the cases.
template <std::size_t N, class Engine>
coordinates<N> random_extents(Engine& g, std::size_t longest) {
  coordinates<N> e{};
  std::size_t left = N == 1 ? longest : 4000;
  for (std::size_t& x : e) {
    x = between(g, 0, 3) == 0 ? 1 : between(g, 1, std::min<std::size_t>(left, N == 1 ? longest : 90));
    left = std::max<std::size_t>(left / x, 1);
  }
  std::shuffle(e.begin(), e.end(), g);
  return e;
}

/// Any box within the extents, maybe an empty one; each side is whole in a third of the cases.
template <std::size_t N, class Engine>
box<N> random_box(Engine& g, const coordinates<N>& extents) {
  box<N> b;
  for (std::size_t k = 0; k < N; ++k) {
    b.lower[k] = between(g, 0, extents[k]);
    b.upper[k] = between(g, b.lower[k], extents[k]);
    if (between(g, 0, 2) == 0) b.lower[k] = 0, b.upper[k] = extents[k];
  }
  return b;
}

/// Options of an array of this layout: any order in the file, any tile that the layout allows.
template <class T, std::size_t N, class Layout, class Engine>
array_options<T> random_order(Engine& g) {
  array_options<T> o{.block = std::size_t{4096} * between(g, 1, 3)};
  if (between(g, 0, 1)) o.order = file_order::tiled;
  if (!Layout::contiguous || o.order == file_order::tiled)
    for (std::size_t k = 0; k < N; ++k)
      o.tile.push_back(Layout::contiguous ? between(g, 1, 9) : std::size_t{1} << between(g, 0, 4));
  return o;
}

/// Calls f(coordinates, linear_index) for the elements of the box, in row-major order.
template <std::size_t N, class F>
void for_each_element(const box<N>& b, const coordinates<N>& extents, F&& f) {
  if (b.empty()) return;
  coordinates<N> c = b.lower;
  for (;;) {
    f(c, linear_index<N>(c, extents));
    std::size_t k = N;
    while (k-- > 0) {
      if (++c[k] < b.upper[k]) break;
      c[k] = b.lower[k];
      if (k == 0) return;
    }
  }
}

/// For the message of a failure.
template <class T, std::size_t N>
std::string describe(const coordinates<N>& extents, const array_options<T>& o,
                     std::uint64_t memory) {
  std::ostringstream s;
  s << element_type<T>::name() << " {";
  for (const std::size_t e : extents) s << e << ",";
  s << "} tile {";
  for (const std::size_t t : o.tile) s << t << ",";
  s << "} block " << o.block << (o.order == file_order::tiled ? " tiled" : "")
    << (o.owner_computes ? " owner_computes" : "") << " memory " << memory;
  return s.str();
}

}  // namespace ooc::testing
