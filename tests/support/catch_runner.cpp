#include "support/catch_runner.hpp"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

int ooc::testing::run_cases(int argc, char** argv, bool stop_at_first_failure) {
  Catch::Session session;
  if (stop_at_first_failure) session.configData().abortAfter = 1;
  if (const int bad = session.applyCommandLine(argc, argv)) return bad;
  return session.run();
}
