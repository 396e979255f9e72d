// Arrays and tiles as Eigen maps: no copy, the map reads and writes the array.
//
//     y = ooc::eigen_map(a) * x;                                   // the whole out-of-core matrix
//     for (auto t : b.tiles(ooc::access_mode::write)) ooc::eigen_map(t).array() += 1;
//
// Include it where Eigen 3.4 is at hand.  A map stays valid as long as the array, and keeps the
// extents of the moment.
#pragma once

#include <Eigen/Core>
#include <type_traits>

#include "oocarray/ooc_array.hpp"

namespace ooc {

namespace detail {

template <class T>
using eigen_row_major = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using eigen_column = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>;
template <class T, class Matrix>
using as_const_as = std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>;

template <class T>
auto map_matrix(T* data, std::size_t rows, std::size_t cols, std::size_t stride) {
  using stride_type = Eigen::OuterStride<>;
  return Eigen::Map<as_const_as<T, eigen_row_major<T>>, Eigen::Unaligned, stride_type>(
      data, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(cols),
      stride_type(static_cast<Eigen::Index>(stride)));
}
template <class T>
auto map_vector(T* data, std::size_t size) {
  return Eigen::Map<as_const_as<T, eigen_column<T>>>(data, static_cast<Eigen::Index>(size));
}

}  // namespace detail

/// A matrix of all elements, row-major.
template <class T>
auto eigen_map(ooc_array<T, 2, layout_right>& a) {
  return detail::map_matrix(a.data(), a.extent(0), a.extent(1), a.extent(1));
}
template <class T>
auto eigen_map(const ooc_array<T, 2, layout_right>& a) {
  return detail::map_matrix(a.data(), a.extent(0), a.extent(1), a.extent(1));
}
/// A column vector of all elements.
template <class T>
auto eigen_map(ooc_array<T, 1, layout_right>& a) {
  return detail::map_vector(a.data(), a.size());
}
template <class T>
auto eigen_map(const ooc_array<T, 1, layout_right>& a) {
  return detail::map_vector(a.data(), a.size());
}
/// The elements of a tile; const if the tile's are.
template <class T>
auto eigen_map(const tile<T, 2>& t) {
  return detail::map_matrix(t.data(), t.rows(), t.cols(), t.stride());
}
template <class T>
auto eigen_map(const tile<T, 1>& t) {
  return detail::map_vector(t.data(), t.size());
}

}  // namespace ooc
