// A part of the case `algorithms`.
#pragma once

#include "measure/case.hpp"

namespace bench {

/// Transposition, reduction, transformation; puts its rows into `out`.
void measure_passes(const options& o, json& out);
void measure_fft(const options& o, json& out);
/// A sweep of planes.
void measure_wave(const options& o, json& out);

}  // namespace bench
