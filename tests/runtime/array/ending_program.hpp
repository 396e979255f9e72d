// ending_program.cpp and the test that runs it agree on this: array 'a' of the store, and what a
// program fills it with.
#pragma once

#include <array>
#include <cstddef>

#include "oocarray/ooc_array.hpp"

namespace ooc::testing {

inline constexpr std::array<std::size_t, 1> filled_elements{100'000};  // 13 blocks

inline double filled_value(std::size_t i) { return static_cast<double>(i + 1); }

inline runtime_options small_runtime() { return {.memory = 2_MiB, .block = 64_KiB}; }

}  // namespace ooc::testing
