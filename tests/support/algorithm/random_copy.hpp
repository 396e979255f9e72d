// Random copies and transpositions, of whole arrays and of boxes, between arrays of any orders and layouts, and
// what each element of the target is afterwards.  On ranks all draw the same.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string>

#include "oocarray/algorithm/copy.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

namespace ooc::testing {

/// The rank's own elements, which is all of them without a group.
template <class T, std::size_t N, class Layout>
void fill(ooc_array<T, N, Layout>& a, std::uint64_t salt) {
  for_each_element<N>(a.local_box(), a.extents(),
                      [&](const coordinates<N>& c, std::size_t n) { a.element(c) = value_of<T>(n + salt); });
}

template <class T, class U, std::size_t N, class From, class To>
struct random_copy {
  static constexpr std::uint64_t source_salt = 1, target_salt = 7000;
  using source_array = ooc_array<T, N, From>;
  using target_array = ooc_array<U, N, To>;

  coordinates<N> from{}, to{};  ///< extents
  std::array<std::size_t, N> permutation{};
  bool boxed = false;
  box<N> which{};          ///< of the source
  coordinates<N> where{};  ///< in the target
  array_options<T> source;
  array_options<U> target;
  pass_options options;

  explicit random_copy(std::mt19937_64& g)
      : from(random_extents<N>(g, 4000)),
        boxed(between(g, 0, 2) == 0),
        source(random_order<T, N, From>(g)),
        target(random_order<U, N, To>(g)) {
    std::iota(permutation.begin(), permutation.end(), 0);
    if (between(g, 0, 3) != 0) std::shuffle(permutation.begin(), permutation.end(), g);
    for (std::size_t k = 0; k < N; ++k) to[k] = from[permutation[k]];
    which = {{}, from};
    if (boxed) {
      to = random_extents<N>(g, 4000);
      coordinates<N> both{};
      for (std::size_t k = 0; k < N; ++k) both[permutation[k]] = std::min(from[permutation[k]], to[k]);
      which = random_box<N>(g, both);
      for (std::size_t k = 0; k < N; ++k) where[k] = between(g, 0, to[k] - which.extent(permutation[k]));
    }
    options.threads = static_cast<unsigned>(between(g, 1, 8));
    options.mark = between(g, 0, 3) == 0;
    if (between(g, 0, 1)) options.memory = 48_KiB + between(g, 0, 20000);
  }

  std::string described(std::uint64_t budget) const {
    std::ostringstream s;
    s << describe<T>(from, source, budget) << " to " << describe<U>(to, target, budget) << ", permutation";
    for (const std::size_t j : permutation) s << ' ' << j;
    if (boxed) {
      s << ", box";
      for (std::size_t k = 0; k < N; ++k) s << ' ' << which.lower[k] << '-' << which.upper[k];
      s << " to";
      for (const std::size_t w : where) s << ' ' << w;
    }
    s << ", threads " << options.threads << ", memory " << options.memory << ", mark " << options.mark;
    return s.str();
  }

  pass_statistics run(const source_array& a, target_array& b) const {
    const bool same_order = std::is_sorted(permutation.begin(), permutation.end());
    if (boxed)
      return same_order ? copy(a, which, b, where, options) : transpose(a, which, b, where, permutation, options);
    return same_order ? copy(a, b, options) : transpose(a, b, permutation, options);
  }

  /// Elements of the target, and of the source, that are not what they should be.
  std::size_t wrong(const source_array& a, const target_array& b) const {
    std::size_t count = 0;
    for_each_element<N>(b.whole(), to, [&](const coordinates<N>& c, std::size_t n) {
      coordinates<N> s{};
      bool copied = true;
      for (std::size_t k = 0; k < N; ++k) {
        const std::size_t j = permutation[k];
        s[j] = c[k] - where[k] + which.lower[j];
        copied = copied && c[k] >= where[k] && c[k] - where[k] < which.extent(j);
      }
      const U expected =
          copied ? static_cast<U>(value_of<T>(linear_index<N>(s, from) + source_salt)) : value_of<U>(n + target_salt);
      count += std::memcmp(&b.element(c), &expected, sizeof(U)) != 0;
    });
    for_each_element<N>(a.whole(), from, [&](const coordinates<N>& c, std::size_t n) {
      const T expected = value_of<T>(n + source_salt);
      count += std::memcmp(&a.element(c), &expected, sizeof(T)) != 0;
    });
    return count;
  }
};

}  // namespace ooc::testing
