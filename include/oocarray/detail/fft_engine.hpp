// The part of the Fourier transform that is compiled once: which boxes of the vector are in memory when, and which
// thread has which of their lines.  The arithmetic is a line_kernel, made by the templates.
//
// Threads: run_fft() is called by one; it calls the kernel's const functions from several at once, and uses each
// line_transform by one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "oocarray/algorithm/pass.hpp"
#include "oocarray/detail/array_core.hpp"

namespace ooc::detail {

/// Transforms lines of one length, with memory of its own.
class line_transform {
 public:
  virtual ~line_transform() = default;
  /// In place.
  virtual void run(std::byte* line) = 0;
};

class line_kernel {
 public:
  virtual ~line_kernel() = default;
  virtual std::size_t element_size() const noexcept = 0;  ///< of complex numbers
  virtual std::size_t given_size() const noexcept = 0;    ///< of the elements that are transformed
  /// Those that lie at the end of the room for as many complex numbers become these.
  virtual void widen(std::byte* room, std::size_t count) const = 0;
  /// Says how long the whole vector is, before turn().
  virtual void prepare(std::uint64_t length) = 0;
  /// Multiplies element k of a line by exp(-+ 2 pi i k column / length of the vector), and by the scale of the result.
  virtual void turn(std::byte* line, std::size_t count, std::uint64_t column) const = 0;
  virtual std::unique_ptr<line_transform> transform(std::size_t length) const = 0;
  /// Bytes that this takes.
  virtual std::uint64_t transform_bytes(std::size_t length) const = 0;
  /// Bytes that prepare() takes.
  virtual std::uint64_t prepared_bytes(std::uint64_t length) const = 0;
};

/// Of the elements of arrays in row-major order, which may be one array; `name` for messages.
pass_statistics run_fft(const char* name, array_core& from, array_core& to, line_kernel& kernel,
                        const pass_options& options);

}  // namespace ooc::detail
