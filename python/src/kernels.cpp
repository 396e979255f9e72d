// Compiled once for each kind of processor; see kernels.hpp.
#include "kernels.hpp"

#include <complex>

#include "oocarray/detail/eigen_lines.hpp"
#include "oocarray/detail/factor_kernels.hpp"
#include "oocarray/detail/product_kernel.hpp"

namespace ooc::python {
namespace {

template <class Result, class F>
Result with_element(const std::string& type, F f) {
  if (type == "f4") return f(std::type_identity<float>());
  if (type == "f8") return f(std::type_identity<double>());
  if (type == "c8") return f(std::type_identity<std::complex<float>>());
  if (type == "c16") return f(std::type_identity<std::complex<double>>());
  return nullptr;
}

std::unique_ptr<detail::multiply_kernel> product(const std::string& type) {
  using result = std::unique_ptr<detail::multiply_kernel>;
  return with_element<result>(
      type, []<class T>(std::type_identity<T>) -> result { return std::make_unique<detail::eigen_kernel<T>>(); });
}

std::unique_ptr<detail::factor_kernel> factors(factor_method m, const std::string& type, std::span<std::byte> numbers) {
  using result = std::unique_ptr<detail::factor_kernel>;
  return with_element<result>(type, [&]<class T>(std::type_identity<T>) -> result {
    const auto as = [&]<class Number>(std::type_identity<Number>) {
      return std::span(reinterpret_cast<Number*>(numbers.data()), numbers.size() / sizeof(Number));
    };
    switch (m) {
      case factor_method::cholesky: return std::make_unique<detail::cholesky_kernel<T>>();
      case factor_method::lu: return std::make_unique<detail::lu_kernel<T>>(as(std::type_identity<std::size_t>()));
      case factor_method::qr: return std::make_unique<detail::qr_kernel<T>>(as(std::type_identity<T>()));
    }
    return nullptr;
  });
}

std::unique_ptr<detail::line_kernel> lines(const std::string& type, bool inverse, double scale) {
  using result = std::unique_ptr<detail::line_kernel>;
  return with_element<result>(type, [&]<class T>(std::type_identity<T>) -> result {
    return std::make_unique<detail::eigen_lines<T, typename Eigen::NumTraits<T>::Real>>(
        inverse ? detail::fft_direction::inverse : detail::fft_direction::forward, scale);
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const kernels* OOCARRAY_KERNELS() {
  static const kernels all{&product, &factors, &lines};
  return &all;
}

}  // namespace ooc::python
