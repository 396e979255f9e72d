// How often a random test repeats what it does: half as often in a run of `scripts/test --fast`
// (OOC_TEST_FAST), more often in one of `scripts/test --long` (OOC_TEST_LONG).
#pragma once

#include <cstdlib>

namespace ooc::testing {

/// `in_long_runs`: 0 means as usual.
inline int rounds(int usual, int in_long_runs = 0) {
  if (std::getenv("OOC_TEST_LONG") != nullptr) return in_long_runs != 0 ? in_long_runs : usual;
  return std::getenv("OOC_TEST_FAST") != nullptr ? (usual + 1) / 2 : usual;
}

}  // namespace ooc::testing
