// How a Fourier transform divides the vector and the memory that it has; arithmetic without I/O, in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ooc::detail {

struct fft_facts {
  std::uint64_t elements = 1;
  std::size_t element_size = 16;
  /// Bytes that threads take for so many lines of such a length.
  std::function<std::uint64_t(std::uint64_t length, std::uint64_t lines)> line_bytes;
};

/// The vector is a matrix, row-major.  First *bands* of its columns are in memory, one after the other, and then of its
/// rows.
struct fft_plan {
  std::uint64_t rows = 0;  ///< 0: nothing fits
  std::uint64_t columns = 0;
  std::uint64_t columns_of_band = 0;
  std::uint64_t rows_of_band = 0;
  bool in_memory = false;          ///< one band has everything
  std::uint64_t buffer_bytes = 0;  ///< of each
  std::uint64_t line_bytes = 0;    ///< beside them
  std::uint64_t buffers() const noexcept { return in_memory ? 2 : 3; }
  std::uint64_t lent_bytes() const noexcept { return buffers() * buffer_bytes; }
  std::uint64_t bytes() const noexcept { return lent_bytes() + line_bytes; }

  std::uint64_t column_bands() const noexcept { return (columns - 1) / columns_of_band + 1; }
  std::uint64_t row_bands() const noexcept { return (rows - 1) / rows_of_band + 1; }
};

/// The one with the longest pieces of the vector, within so many bytes.
fft_plan plan_fft(const fft_facts& f, std::uint64_t memory_bytes);
/// The least memory in which one fits.
std::uint64_t least_fft_memory(const fft_facts& f);

}  // namespace ooc::detail
