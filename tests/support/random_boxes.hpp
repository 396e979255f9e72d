// Boxes and resizes drawn at random, their elements, and how a random program describes its array.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

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
std::string describe(const coordinates<N>& extents, const array_options<T>& o, std::uint64_t memory) {
  std::ostringstream s;
  s << element_type<T>::name() << " {";
  for (const std::size_t e : extents) s << e << ",";
  s << "} tile {";
  for (const std::size_t t : o.tile) s << t << ",";
  s << "} block " << o.block << (o.order == file_order::tiled ? " tiled" : "")
    << (o.owner_computes ? " owner_computes" : "") << " memory " << memory;
  return s.str();
}

/// options.max_extents for an array of these extents: of other dimensions than the first only where they can change.
template <class Layout, std::size_t N, class T>
std::vector<std::size_t> some_limits(std::mt19937_64& g, const coordinates<N>& extents, const array_options<T>& o) {
  std::vector<std::size_t> limits{extents[0] + between(g, 0, extents[0] + 3)};
  if (o.order != file_order::tiled || Layout::contiguous) return limits;
  for (std::size_t k = 1; k < N; ++k)
    limits.push_back(between(g, 0, 2) == 0 ? 0 : extents[k] + between(g, 0, extents[k] + 3));
  return limits;
}

/// Extents that the array may be given: all of them others, or one.
template <class T, class Array>
auto some_extents(std::mt19937_64& g, const Array& a, const array_options<T>& o) {
  auto extents = a.extents();
  const auto& limits = o.max_extents;
  const bool any = std::any_of(limits.begin() + !limits.empty(), limits.end(), [](std::size_t n) { return n != 0; });
  const std::size_t dimensions = any ? extents.size() : 1;
  const std::size_t only = between(g, 0, dimensions);  // the last: none
  for (std::size_t k = 0; k < dimensions; ++k)
    if (only == dimensions || only == k) extents[k] = between(g, 1, a.max_extents()[k]);
  return extents;
}

/// What a row-major array of extents `from` has where it has those of `to`, and `fill` elsewhere.
template <class T, std::size_t N>
std::vector<T> resized(const std::vector<T>& plain, const coordinates<N>& from, const coordinates<N>& to,
                       const T& fill) {
  box<N> both{{}, from}, all{{}, to};
  for (std::size_t k = 0; k < N; ++k) both.upper[k] = std::min(from[k], to[k]);
  std::vector<T> result(all.size(), fill);
  for_each_element<N>(both, to,
                      [&](const coordinates<N>& c, std::size_t at) { result[at] = plain[linear_index<N>(c, from)]; });
  return result;
}

}  // namespace ooc::testing
