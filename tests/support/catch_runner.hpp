// Runs the cases of a test program.  Catch's own code is compiled once for all of them.
#pragma once

namespace ooc::testing {

/// What main() returns.
int run_cases(int argc, char** argv, bool stop_at_first_failure = false);

}  // namespace ooc::testing
