// Random tests that can be run again: the seed is printed with every failure and may be given in
// the environment, OOC_TEST_SEED=12345.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace ooc::testing {

inline std::uint64_t random_seed() {
  static const std::uint64_t seed = [] {
    if (const char* given = std::getenv("OOC_TEST_SEED"))
      return static_cast<std::uint64_t>(std::strtoull(given, nullptr, 0));
    return static_cast<std::uint64_t>(std::random_device{}());
  }();
  return seed;
}

/// A generator for one scenario; scenarios with different salts draw different numbers.
inline std::mt19937_64 random_source(std::uint64_t salt) {
  return std::mt19937_64(random_seed() * 0x9e3779b97f4a7c15u + salt);
}

inline std::uint64_t between(std::mt19937_64& g, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(g);
}

}  // namespace ooc::testing

/// Prints the seed where an assertion of the enclosing scope fails.
#define OOC_INFO_SEED() INFO("replay with OOC_TEST_SEED=" << ooc::testing::random_seed())
