// The part of ooc::multiply() that is compiled once: which panels are in memory when, and which thread
// multiplies which part of them.  The multiplication itself is a multiply_kernel, made by the template.
//
// Threads: run_multiply() is called by one; it calls the kernel from several at once, for parts of the product
// that do not overlap.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc {

/// See pass_options.
struct multiply_options {
  unsigned threads = 0;
  bool mark = true;
  std::uint64_t memory = 0;  ///< 0: all that the budget can spare
  std::function<bool(const pass_progress&)> progress = {};
  bool plan = false;
};

/// `passes` counts those over a.
struct multiply_statistics : pass_statistics {
  std::uint64_t passes_of_b = 0;
  std::uint64_t tile_rows = 0;  ///< of the part of c that is in memory at a time
  std::uint64_t tile_columns = 0;
};

namespace detail {

template <class T>
concept multiplied_element = std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Row-major; `stride` elements from row to row.
struct matrix_part {
  const std::byte* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;
};

class multiply_kernel {
 public:
  virtual ~multiply_kernel() = default;
  virtual std::size_t element_size() const noexcept = 0;
  /// It uses several threads itself, so that only one may call it.
  virtual bool threads_by_itself() const noexcept = 0;
  /// c = a b, or c += a b.
  virtual void multiply(const matrix_part& a, const matrix_part& b, std::byte* c, std::size_t stride_of_c,
                        bool add) const = 0;
};

/// A matrix in an array of two dimensions, or packed in memory.
struct matrix_operand {
  array_core* array = nullptr;
  std::byte* memory = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// Bytes of a product in memory that each of so many ranks passes on to all at a time: 64 MiB of all ranks, which each
/// of them takes beside the product, as one operation carries less than 2 GiB.
inline std::size_t passed_on_at_a_time(int ranks) {
  constexpr std::size_t of_all = 64 << 20, most = 4 << 20;
  return std::clamp<std::size_t>(of_all / static_cast<std::size_t>(ranks), 1, most);
}

/// `a` is an array.
multiply_statistics run_multiply(const matrix_operand& a, const matrix_operand& b, const matrix_operand& c,
                                 const multiply_kernel& kernel, const multiply_options& options);

}  // namespace detail
}  // namespace ooc
