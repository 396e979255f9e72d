// Jacobi as the cases that compare it have it: its arrays and files, its start, what it comes to, and the rival, the
// plain loop over mapped files.
#pragma once

#include <filesystem>
#include <functional>

#include "measure/case.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/ooc_array.hpp"

namespace bench {

/// Two arrays "a" and "b" of a store, and two plain files of the same size.
struct jacobi_setting {
  static constexpr std::uint64_t slack = 64 << 20;

  std::filesystem::path store, plain_a, plain_b;
  std::uint64_t budget = 0;
  std::size_t n = 0;

  std::uint64_t bytes() const { return n * n * sizeof(double); }  ///< of one array
  std::uint64_t cap() const { return budget + slack; }
};

inline double start_value(std::size_t i, std::size_t j) { return static_cast<double>((i * 7 + j * 3) % 64); }

/// A step, for ooc::sweep().
inline auto jacobi_stencil() {
  return ooc::stencil({1, 1}, [](auto& to, const auto& from) {
    const auto above = from[-1], here = from[0], below = from[1];
    const auto next = to.template get<0>();
    for (std::ptrdiff_t j = to.lower(1); j < to.upper(1); ++j)
      next[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
  });
}

/// A value that depends on much of the array, and touches little of it.
template <class At>
double fingerprint(std::size_t n, At at) {
  double f = 0;
  for (std::size_t k = 1; k < 64; ++k) f += at(k * n / 64, (k * k * 131) % n);
  return f;
}

/// Start values in our arrays.
void make_jacobi_arrays(const jacobi_setting& s);
/// Start values in the plain files.
void make_jacobi_files(const jacobi_setting& s);
/// Seconds of so many steps over the mapped files, an even number, which leaves the result in `plain_a`; `finish` is
/// part of them.
json mapped_jacobi(
    const jacobi_setting& s, unsigned steps, int advice, const std::function<void()>& finish = [] {});

}  // namespace bench
