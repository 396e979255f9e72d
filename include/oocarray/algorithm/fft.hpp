// Fourier transforms of vectors larger than memory.
//
//     ooc::fft(x, y);        // y[k] = sum over j of x[j] exp(-2 pi i j k / n)
//     ooc::ifft(y, z);       // z[j] = 1/n sum over k of y[k] exp(+2 pi i j k / n)
//     ooc::fft(z);           // in place
//
// x is real or complex, float or double; y has as many complex numbers.  x is read once, something as large as y is
// written to a temporary file of the store and read again, and y is written once: two passes (D. H. Bailey, *FFTs in
// external or hierarchical memory*, 1990).  What fits in memory twice is one pass.  Lines in memory are transformed by
// Eigen, all threads at once.
//
// *Lengths.*  n is taken as a product of two lengths n1 n2, and memory has room for three times the longer one.  Any n
// with such a product will do; a line with a prime factor above 64 is transformed as a convolution of two to four times
// its length.  A length that has none, as a
// large prime, fails with the memory that it would need: transform one with zeros behind it, if that serves, or see
// oocarray.numpy.fft, which makes it a convolution.
//
// *Ranks.*  Where y is an array of a group the call is collective, and x is an array of the same group or opened by
// each rank for itself.  Bands of columns and rows are divided among the ranks, whose temporary file is one.  All take
// as much memory as the one with the least has.  Afterwards every rank sees the result.
//
// *Errors.*  Throws usage_error (errc::invalid_request) for arrays of different lengths, or one that other processes
// write to (options.shared); (errc::busy) while a region of y is pinned; (errc::budget_too_small); io_error, also where
// the store has no room for the temporary file.  On ranks all throw what one of them throws.  x stays as it is, also in
// place, until the second pass begins; from then on an error, a cancellation or a death leaves y neither old nor new,
// and marked (pass.hpp).
//
// Threads: no other thread may use the arrays meanwhile.  On return y is acknowledged, and with options.mark durable;
// its blocks have left memory.
#pragma once

#include <complex>
#include <concepts>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/eigen_lines.hpp"
#include "oocarray/detail/fft_engine.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc {
namespace detail {

template <class Given, class T>
concept transformed_to = std::same_as<Given, T> || std::same_as<Given, std::complex<T>>;

template <class Given, class T>
requires transformed_to<Given, T> pass_statistics transform_vector(const ooc_array<Given, 1>& x,
                                                                   ooc_array<std::complex<T>, 1>& y,
                                                                   fft_direction direction, double scale,
                                                                   const pass_options& options) {
  static_assert(std::same_as<T, float> || std::same_as<T, double>, "transforms are of float or double");
  eigen_lines<Given, T> lines(direction, scale);
  // The call may change which of its blocks are in memory, not the array itself.
  return run_fft(direction == fft_direction::forward ? "Fourier transform" : "inverse Fourier transform",
                 const_cast<array_core&>(x.core()), y.core(), lines, options);
}

}  // namespace detail

/// The Fourier transform of x, which is of T or std::complex<T>; see above.
template <class Given, std::floating_point T>
requires detail::transformed_to<Given, T> pass_statistics fft(const ooc_array<Given, 1>& x,
                                                              ooc_array<std::complex<T>, 1>& y,
                                                              const pass_options& options = {}) {
  return detail::transform_vector(x, y, detail::fft_direction::forward, 1, options);
}

/// The inverse of that, which has the factor 1/n.
template <class Given, std::floating_point T>
requires detail::transformed_to<Given, T> pass_statistics ifft(const ooc_array<Given, 1>& x,
                                                               ooc_array<std::complex<T>, 1>& y,
                                                               const pass_options& options = {}) {
  const double scale = x.size() == 0 ? 1 : 1 / static_cast<double>(x.size());
  return detail::transform_vector(x, y, detail::fft_direction::inverse, scale, options);
}

template <std::floating_point T>
pass_statistics fft(ooc_array<std::complex<T>, 1>& x, const pass_options& options = {}) {
  return fft(x, x, options);
}
template <std::floating_point T>
pass_statistics ifft(ooc_array<std::complex<T>, 1>& x, const pass_options& options = {}) {
  return ifft(x, x, options);
}

}  // namespace ooc
