// What multiplies and factorises matrices in memory: once for every processor, and once more for x86-64-v3 (AVX2, FMA),
// two to three times as fast, as a module of its own that is loaded where the processor can run it.  (One module for
// both would not do: of inline functions that both have, the linker keeps one.)
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "oocarray/detail/factor_engine.hpp"
#include "oocarray/detail/fft_engine.hpp"
#include "oocarray/detail/multiply_engine.hpp"

namespace ooc::python {

enum class factor_method { cholesky, lu, qr };

struct kernels {
  /// Null for a type that has none.
  std::unique_ptr<detail::multiply_kernel> (*product)(const std::string& element_type);
  /// `numbers`: one pivot (std::size_t) or tau (an element) for each column that is factorised.
  std::unique_ptr<detail::factor_kernel> (*factors)(factor_method m, const std::string& element_type,
                                                    std::span<std::byte> numbers);
  /// Of Fourier transforms of such elements, real or complex.
  std::unique_ptr<detail::line_kernel> (*lines)(const std::string& element_type, bool inverse, double scale);
};

/// Those for this processor.  Throws ooc::error where the module cannot be loaded.
const kernels& best_kernels();

}  // namespace ooc::python
