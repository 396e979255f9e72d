// A part of the case `algorithms`.
#pragma once

#include "measure/case.hpp"

namespace bench {

/// Sorting, until the result is on the disk; puts its rows into `out`.
void measure_sort(const options& o, json& out);
/// Products of matrices, likewise.
void measure_multiply(const options& o, json& out);
void measure_factorise(const options& o, json& out);

}  // namespace bench
