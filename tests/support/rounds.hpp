// How often a random test repeats what it does: half as often in a run of `scripts/test --fast`
// (OOC_TEST_FAST), a quarter as often under AddressSanitizer, more often in one of `scripts/test --long`
// (OOC_TEST_LONG).
#pragma once

#include <cstdlib>

namespace ooc::testing {

/// `in_long_runs`: 0 means as usual.
inline int rounds(int usual, int in_long_runs = 0) {
  if (std::getenv("OOC_TEST_LONG") != nullptr) return in_long_runs != 0 ? in_long_runs : usual;
#ifdef __SANITIZE_ADDRESS__
  constexpr int part = 4;  // they take several times as long
#else
  constexpr int part = 2;
#endif
  return std::getenv("OOC_TEST_FAST") != nullptr ? (usual + part - 1) / part : usual;
}

}  // namespace ooc::testing
