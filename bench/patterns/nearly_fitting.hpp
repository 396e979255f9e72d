// What is written for what is evicted, where an array that is updated in place nearly fits in memory.
//
//     LOOP_in_RATIO_written      bytes written / bytes evicted, the memory being RATIO times the array
//     LOOP_in_RATIO_written_mib, LOOP_in_RATIO_evicted_mib, LOOP_in_RATIO_read_mib, LOOP_in_RATIO_touches_per_s
//
// LOOP is random_update, zipf_update or column_update.  What is counted comes after as long a time in which memory
// fills. Where the array fits nothing is evicted, and LOOP_in_RATIO_written is left out.
#pragma once

#include <cstdint>
#include <filesystem>

#include "measure/case.hpp"

namespace bench::patterns {

/// In a store of its own below `dir`.
void measure_nearly_fitting(const std::filesystem::path& dir, std::uint64_t budget, double seconds, json& out);

}  // namespace bench::patterns
