// The part of the factorisations that is compiled once: which columns of the matrix are in memory when, and which
// thread computes which of them.  The arithmetic is a factor_kernel, made by the templates.
//
// The *columns* of the matrix are the rows of the array that holds it.  A *strip* is some neighbouring columns that are
// factorised at a time.
//
// Threads: run_factorisation() and run_factor_steps() are called by one; they call factor_kernel::compute() from
// several at once, for targets that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "oocarray/detail/multiply_engine.hpp"

namespace ooc {

using factor_options = multiply_options;

struct factor_statistics : pass_statistics {
  std::uint64_t panels = 0;  ///< parts, one after the other, in which the columns were in memory
};

namespace detail {

/// Part of a matrix, column by column; `stride` elements from column to column.
struct matrix_block {
  std::byte* data = nullptr;
  std::size_t row = 0;  ///< in the matrix, of the first element
  std::size_t column = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;
};

enum class factor_step {
  update,      ///< of columns to the right, in a factorisation
  forward,     ///< of right-hand sides, by L or by the adjoint of Q
  back,        ///< of right-hand sides, by U, R, or the adjoint of L
  orthogonal,  ///< of right-hand sides, by Q
};

class factor_kernel {
 public:
  virtual ~factor_kernel() = default;
  virtual std::size_t element_size() const noexcept = 0;
  /// It uses several threads itself, so that only one may call it.
  virtual bool threads_by_itself() const noexcept = 0;
  /// Elements above the diagonal are neither read nor written.  Where this is false, compute() does not look at the
  /// numbers of the target's columns, which need not be neighbours in the matrix.
  virtual bool below_diagonal_only() const noexcept = 0;
  /// Factorises a strip in place, which its columns to the left have updated; compute() may use it then.  Returns how
  /// many of its columns could be.
  virtual std::size_t factorise(const matrix_block& strip) = 0;
  /// Makes it into what the file holds, whatever the width of strips.
  virtual void keep(const matrix_block& strip) const = 0;
  /// What is kept of the columns of a strip beside their elements.  Other ranks are given it with the strip.
  virtual std::span<std::byte> numbers(const matrix_block& strip) const = 0;
  /// Makes what the file holds into what compute() uses next, until the next call.  Returns how many of its columns can
  /// be used.
  virtual std::size_t use(factor_step step, const matrix_block& strip) = 0;
  /// Rows of the target that are not rows of the strip stay as they are.
  virtual void compute(factor_step step, const matrix_block& strip, const matrix_block& target) const = 0;
};

/// What is factorised is in `from`, the result in `to`, which may be the same.
factor_statistics run_factorisation(const char* what, array_core& from, array_core& to, factor_kernel& kernel,
                                    const factor_options& options);

/// Vectors of as many elements as the matrix has rows: the rows of an array, or in memory one after the other.
struct factor_vectors {
  array_core* array = nullptr;
  std::byte* memory = nullptr;
  std::size_t count = 0;
  std::size_t length = 0;
};

/// Takes `vectors` through the steps, by so many of the factorised columns, from the first on.
factor_statistics run_factor_steps(const char* what, array_core& factors, std::size_t columns, factor_kernel& kernel,
                                   const factor_vectors& vectors, std::initializer_list<factor_step> steps,
                                   const factor_options& options);

}  // namespace detail
}  // namespace ooc
