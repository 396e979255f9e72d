// Where a vector comes from: a NumPy file, or an array that the store has already.
#pragma once

#include <cstdint>
#include <string>

#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace inner_product_example {

class source {
 public:
  /// "FILE.npy" or "store:PATH".  Throws bad_option for anything else.
  explicit source(const std::string& text);

  bool is_npy() const noexcept { return npy_; }
  /// Of the .npy file, or in the store.
  const std::string& path() const noexcept { return path_; }

  /// Throws bad_option where this is a .npy file that holds something else than a vector of T.
  template <class T>
  void check() const;
  /// Makes the array `to` with the elements of the .npy file.  T: double or std::int32_t.
  template <class T>
  void import_to(ooc::runtime& rt, const ooc::store& s, const std::string& to, bool quiet) const;

 private:
  std::string path_;
  bool npy_;
};

struct checked_sum {
  long double sum = 0;  ///< exact for integers
  double moduli = 0;    ///< sum of |x_i y_i|: what rounding is measured by
};

/// sum_i x_i y_i over `n` elements read from files one piece after the other, without any array.
template <class T>
checked_sum streamed(const source& x, const source& y, const ooc::store& s, std::uint64_t n);

}  // namespace inner_product_example
