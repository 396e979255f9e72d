// Matrices in memory, and the same in arrays.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <random>

#include "oocarray/ooc_array.hpp"

namespace ooc::testing {

template <class T>
using dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
struct real_part_of {
  using type = T;
};
template <class T>
struct real_part_of<std::complex<T>> {
  using type = T;
};

/// A number whose parts `part` gives.
template <class T, class F>
T number_of(F part) {
  using real = typename real_part_of<T>::type;
  if constexpr (std::is_same_v<T, real>) {
    return static_cast<T>(part());
  } else {
    const auto re = static_cast<real>(part());
    return {re, static_cast<real>(part())};
  }
}

template <class T, class F>
dense<T> matrix_of(std::size_t rows, std::size_t columns, F part) {
  dense<T> m(rows, columns);
  for (Eigen::Index e = 0; e < m.size(); ++e) m.data()[e] = number_of<T>(part);
  return m;
}

template <class T, class Layout>
void store_matrix(const dense<T>& m, ooc_array<T, 2, Layout>& a) {
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j)
      a(i, j) = m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
}

template <class T, class Layout>
dense<T> stored_matrix(const ooc_array<T, 2, Layout>& a) {
  dense<T> m(a.extent(0), a.extent(1));
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j)
      m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = a(i, j);
  return m;
}

template <class T, class Layout>
bool holds(const ooc_array<T, 2, Layout>& a, const dense<T>& m) {
  return stored_matrix(a) == m;
}

}  // namespace ooc::testing
