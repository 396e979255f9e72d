// The arithmetic of products, by Eigen.
#pragma once

#include <Eigen/Core>
#include <cstddef>

#include "oocarray/detail/multiply_engine.hpp"

namespace ooc::detail {

template <multiplied_element T>
class eigen_kernel final : public multiply_kernel {
 public:
  std::size_t element_size() const noexcept override { return sizeof(T); }
  bool threads_by_itself() const noexcept override { return Eigen::nbThreads() > 1; }
  void multiply(const matrix_part& a, const matrix_part& b, std::byte* c, std::size_t stride_of_c,
                bool add) const override {
    const auto to = view<matrix>(reinterpret_cast<T*>(c), a.rows, b.columns, stride_of_c);
    const auto left = view<const matrix>(reinterpret_cast<const T*>(a.data), a.rows, a.columns, a.stride);
    const auto right = view<const matrix>(reinterpret_cast<const T*>(b.data), b.rows, b.columns, b.stride);
    auto target = to;
    if (add)
      target.noalias() += left * right;
    else
      target.noalias() = left * right;
  }

 private:
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  template <class M, class Element>
  static auto view(Element* data, std::size_t rows, std::size_t columns, std::size_t stride) {
    return Eigen::Map<M, Eigen::Unaligned, Eigen::OuterStride<>>(
        data, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns),
        Eigen::OuterStride<>(static_cast<Eigen::Index>(stride)));
  }
};

}  // namespace ooc::detail
