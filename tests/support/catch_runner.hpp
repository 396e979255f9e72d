// Runs the cases of a test program.  Catch's own code is compiled once for all of them.
#pragma once

namespace ooc::testing {

/// The result of main().
int run_cases(int argc, char** argv, bool stop_at_first_failure = false);

}  // namespace ooc::testing
