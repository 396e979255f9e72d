// One seed for all random tests of an executable, and a generator per scenario.
#pragma once

#include <cstdint>
#include <random>

#include "support/random_seed.hpp"

namespace ooc::testing {

inline std::uint64_t array_seed() {
  static const std::uint64_t seed = random_seed("arrays");
  return seed;
}

/// A generator for one scenario; scenarios with different salts draw different numbers.
inline std::mt19937_64 random_source(std::uint64_t salt) {
  return std::mt19937_64(array_seed() * 0x9e3779b97f4a7c15u + salt);
}

}  // namespace ooc::testing

/// Prints the seed where an assertion of the enclosing scope fails.
#define OOC_INFO_SEED() INFO("replay with OOC_TEST_SEED=" << ooc::testing::array_seed())
