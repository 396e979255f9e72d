// Lines in memory that Eigen transforms (its kissfft): the arithmetic of algorithm/fft.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "oocarray/detail/fft_engine.hpp"

namespace ooc::detail {

enum class fft_direction { forward, inverse };

inline double sign_of(fft_direction d) noexcept { return d == fft_direction::forward ? -1 : 1; }

/// exp(sign 2 pi i k / n), rounded once.
inline std::complex<double> root_of_unity(double sign, std::uint64_t k, std::uint64_t n) {
  // An eighth of the circle has the others, with arguments that sin and cos are exact for.
  const std::uint64_t eighth = 8 * k / n, in_quarter = eighth / 2;
  const auto angle = [n](std::uint64_t of) {
    return 2 * std::numbers::pi * (static_cast<double>(of) / static_cast<double>(n));
  };
  std::complex<double> w;
  const std::uint64_t rest = 4 * k - in_quarter * n;  // quarters of a step, from the beginning of the quarter
  if (eighth % 2 == 0)
    w = {std::cos(angle(rest) / 4), std::sin(angle(rest) / 4)};
  else
    w = {std::sin(angle(n - rest) / 4), std::cos(angle(n - rest) / 4)};
  for (std::uint64_t q = 0; q < in_quarter; ++q) w = {-w.imag(), w.real()};
  return {w.real(), sign * w.imag()};
}

/// Of any length: where it has a large prime factor, as a convolution of a length that has none (L. I. Bluestein, *A
/// linear filtering approach to the computation of the discrete Fourier transform*, IEEE Trans. AU 1970).
template <class T>
class eigen_line final : public line_transform {
 public:
  using complex = std::complex<T>;

  eigen_line(std::size_t length, fft_direction direction)
      : length_(length), padded_(padded_length(length)), direction_(direction) {
    fft_.SetFlag(Eigen::FFT<T>::Unscaled);
    made_.resize(std::max(length_, padded_));
    if (padded_ == 0) return;
    work_.resize(padded_);
    chirp_.resize(length_);
    for (std::size_t k = 0; k < length_; ++k)
      chirp_[k] = complex(root_of_unity(sign_of(direction_), (std::uint64_t{k} * k) % (2 * length_), 2 * length_));
    for (std::size_t k = 0; k < length_; ++k) {
      const complex c = std::conj(chirp_[k]) / static_cast<T>(padded_);
      work_[k] = c;
      if (k != 0) work_[padded_ - k] = c;
    }
    filter_.resize(padded_);
    transform(filter_, work_, fft_direction::forward);
  }

  static std::uint64_t bytes(std::size_t length) {
    const std::uint64_t padded = padded_length(length);
    // Eigen keeps the roots of unity of each direction.
    return sizeof(complex) * (padded == 0 ? 2 * std::uint64_t{length} : length + 5 * padded);
  }

  void run(std::byte* line) override {
    auto* const x = reinterpret_cast<complex*>(line);
    if (length_ == 1) return;
    if (padded_ == 0) {
      transform(made_, x, direction_);
      std::copy_n(made_.data(), length_, x);
      return;
    }
    std::transform(x, x + length_, chirp_.begin(), work_.begin(), std::multiplies<>());
    std::fill(work_.begin() + static_cast<std::ptrdiff_t>(length_), work_.end(), complex{});
    transform(made_, work_.data(), fft_direction::forward);
    std::transform(made_.begin(), made_.end(), filter_.begin(), made_.begin(), std::multiplies<>());
    transform(work_, made_.data(), fft_direction::inverse);
    std::transform(work_.begin(), work_.begin() + static_cast<std::ptrdiff_t>(length_), chirp_.begin(), x,
                   std::multiplies<>());
  }

 private:
  /// 0: the length itself will do.
  static std::size_t padded_length(std::size_t length) {
    constexpr std::size_t largest = 64;  // prime factor, each of which costs Eigen as many operations for an element
    std::size_t rest = length;
    for (std::size_t p = 2; p <= largest && rest > 1; ++p)
      while (rest % p == 0) rest /= p;
    return rest <= 1 ? 0 : std::bit_ceil(2 * length - 1);
  }

  void transform(std::vector<complex>& to, const std::vector<complex>& from, fft_direction d) {
    transform(to, from.data(), d);
  }
  void transform(std::vector<complex>& to, const complex* from, fft_direction d) {
    const auto n = static_cast<Eigen::Index>(to.size());
    d == fft_direction::forward ? fft_.fwd(to.data(), from, n) : fft_.inv(to.data(), from, n);
  }

  const std::size_t length_;
  const std::size_t padded_;
  const fft_direction direction_;
  Eigen::FFT<T> fft_;
  std::vector<complex> made_, work_, chirp_, filter_;
};

/// `Given`: T or std::complex<T>.
template <class Given, class T>
class eigen_lines final : public line_kernel {
 public:
  using complex = std::complex<T>;

  eigen_lines(fft_direction d, double scale) : direction_(d), scale_(scale) {}

  std::size_t element_size() const noexcept override { return sizeof(complex); }
  std::size_t given_size() const noexcept override { return sizeof(Given); }

  void widen(std::byte* room, std::size_t count) const override {
    if constexpr (sizeof(Given) != sizeof(complex)) {
      auto* const to = reinterpret_cast<complex*>(room);
      const std::byte* const from = room + count * (sizeof(complex) - sizeof(Given));
      for (std::size_t k = 0; k < count; ++k) {
        Given x;
        std::memcpy(&x, from + k * sizeof x, sizeof x);
        to[k] = x;
      }
    }
  }

  void prepare(std::uint64_t length) override {
    length_ = length;
    fine_.resize(fine_count(length));
    coarse_.resize(length / fine_.size() + 1);
    for (std::size_t k = 0; k < fine_.size(); ++k) fine_[k] = root_of_unity(sign_of(direction_), k % length, length);
    for (std::size_t k = 0; k < coarse_.size(); ++k)
      coarse_[k] = scale_ * root_of_unity(sign_of(direction_), (k * fine_.size()) % length, length);
  }
  std::uint64_t prepared_bytes(std::uint64_t length) const override {
    return sizeof(std::complex<double>) * (fine_count(length) + length / fine_count(length) + 1);
  }

  void turn(std::byte* line, std::size_t count, std::uint64_t column) const override {
    auto* const x = reinterpret_cast<complex*>(line);
    std::uint64_t at = 0;  // k column modulo the length
    for (std::size_t k = 0; k < count; ++k) {
      const std::complex<double>&a = coarse_[at / fine_.size()], &b = fine_[at % fine_.size()];
      const complex w(static_cast<T>(a.real() * b.real() - a.imag() * b.imag()),
                      static_cast<T>(a.real() * b.imag() + a.imag() * b.real()));
      x[k] = {x[k].real() * w.real() - x[k].imag() * w.imag(), x[k].real() * w.imag() + x[k].imag() * w.real()};
      at += column;
      if (at >= length_) at -= length_;
    }
  }

  std::unique_ptr<line_transform> transform(std::size_t length) const override {
    return std::make_unique<eigen_line<T>>(length, direction_);
  }
  std::uint64_t transform_bytes(std::size_t length) const override { return eigen_line<T>::bytes(length); }

 private:
  /// About the root of the length.
  static std::size_t fine_count(std::uint64_t length) { return std::size_t{1} << std::bit_width(length) / 2; }

  const fft_direction direction_;
  const double scale_;
  std::uint64_t length_ = 1;
  std::vector<std::complex<double>> fine_, coarse_;  ///< roots of unity: each step, and each so manieth
};

}  // namespace ooc::detail
