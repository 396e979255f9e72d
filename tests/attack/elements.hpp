// Elements, boxes and their places, for the rounds that keep a plain copy of an array.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <random>
#include <span>
#include <sstream>
#include <string>

#include "oocarray/ooc_array.hpp"

namespace ooc::attack {

/// An element that divides no block evenly, without padding.
struct record24 {
  std::uint64_t a;
  std::uint32_t b[3];
  std::uint32_t c;
};
static_assert(sizeof(record24) == 24);

/// Different from its neighbours in every byte that matters.
template <class T>
T value_of(std::uint64_t n) {
  const std::uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15u >> 8;
  if constexpr (std::is_same_v<T, record24>) {
    const auto low = static_cast<std::uint32_t>(mixed);
    return {mixed, {low, ~low, low * 3}, low * 5};
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return {static_cast<double>(mixed), static_cast<double>(n)};
  } else {
    return static_cast<T>(mixed);
  }
}

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string hex(const T& v) {
  std::ostringstream s;
  s << std::hex << std::setfill('0');
  for (const std::byte b : std::as_bytes(std::span(&v, 1))) s << std::setw(2) << unsigned(b);
  return s.str();
}

/// The place of an element in a row-major vector.
template <std::size_t N>
std::size_t place_of(const coordinates<N>& c, const coordinates<N>& extents) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < N; ++k) n = n * extents[k] + c[k];
  return n;
}

/// Calls f(coordinates, place) in row-major order.
template <std::size_t N, class F>
void each_of(const box<N>& b, const coordinates<N>& extents, F&& f) {
  if (b.empty()) return;
  for (coordinates<N> c = b.lower;;) {
    f(c, place_of<N>(c, extents));
    std::size_t k = N - 1;
    for (++c[k]; c[k] == b.upper[k]; ++c[k]) {
      c[k] = b.lower[k];
      if (k-- == 0) return;
    }
  }
}

inline std::uint64_t draw(std::mt19937_64& g, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(g);
}

/// Maybe empty, often whole in a dimension.
template <std::size_t N>
box<N> draw_box(std::mt19937_64& g, const coordinates<N>& extents) {
  box<N> b;
  for (std::size_t k = 0; k < N; ++k) {
    b.lower[k] = draw(g, 0, extents[k]);
    b.upper[k] = draw(g, b.lower[k], extents[k]);
    if (draw(g, 0, 2) == 0) b.lower[k] = 0, b.upper[k] = extents[k];
  }
  return b;
}

template <std::size_t N>
coordinates<N> draw_element(std::mt19937_64& g, const coordinates<N>& extents) {
  coordinates<N> c;
  for (std::size_t k = 0; k < N; ++k) c[k] = draw(g, 0, extents[k] - 1);
  return c;
}

/// Sides whose product is at most `most`; of several, one is at most ten times `side` and the others `side`.
template <std::size_t N>
coordinates<N> draw_extents(std::mt19937_64& g, std::uint64_t most, std::uint64_t side = 40) {
  coordinates<N> e;
  for (std::size_t k = 0; k < N; ++k) {
    e[k] = draw(g, 1, N == 1 ? most : std::min<std::uint64_t>(most, k + 1 == N ? 10 * side : side));
    most = std::max<std::uint64_t>(1, most / e[k]);
  }
  std::shuffle(e.begin(), e.end(), g);
  return e;
}

/// Where tiles are asked for: of the file (any shape) or of memory too (powers of two).
template <std::size_t N>
std::vector<std::size_t> draw_tile(std::mt19937_64& g, const coordinates<N>& extents, std::size_t element) {
  std::vector<std::size_t> t;
  std::size_t room = std::bit_floor(8192 / element);
  for (std::size_t k = 0; k < N; ++k) {
    t.push_back(std::min<std::size_t>(room, std::size_t{1} << draw(g, 0, std::bit_width(extents[k]))));
    room /= t.back();
  }
  t.back() *= std::max<std::size_t>(1, room / 4);  // no blocks of a few elements
  return t;
}

}  // namespace ooc::attack
