// Seeds of random tests: printed, and taken from OOC_TEST_SEED to replay a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace ooc::testing {

inline std::uint64_t random_seed(const char* test) {
  const char* given = std::getenv("OOC_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::cout << test << ": OOC_TEST_SEED=" << seed << std::endl;
  return seed;
}

/// A number in [low, high].
template <class Engine>
std::uint64_t between(Engine& e, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(e);
}

}  // namespace ooc::testing
