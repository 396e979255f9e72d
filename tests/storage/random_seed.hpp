// The seed of a randomised test: printed, and replayed with OOC_TEST_SEED=<seed>.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace ooc::storage::test {

inline std::uint64_t random_seed(const char* test) {
  const char* given = std::getenv("OOC_TEST_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::cout << test << ": OOC_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace ooc::storage::test
