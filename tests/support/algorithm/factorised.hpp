// What tests of factorisations share.
#pragma once

#include <limits>
#include <random>

#include "support/algorithm/matrices.hpp"

namespace ooc::testing {

/// Of a backward stable method, for matrices of so many rows.
template <class T>
double rounding(std::size_t n) {
  return 30.0 * static_cast<double>(n + 10) * std::numeric_limits<typename real_part_of<T>::type>::epsilon();
}

template <class T>
dense<T> random_matrix(std::mt19937_64& g, std::size_t rows, std::size_t columns) {
  std::uniform_real_distribution<double> d(-1, 1);
  return matrix_of<T>(rows, columns, [&] { return d(g); });
}

}  // namespace ooc::testing
