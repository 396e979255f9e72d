#include "support/catch_runner.hpp"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "storage/base/lost_data.hpp"

namespace ooc::testing {

int run_cases(int argc, char** argv, bool stop_at_first_failure) {
  Catch::Session session;
  if (stop_at_first_failure) session.configData().abortAfter = 1;
  if (const int bad = session.applyCommandLine(argc, argv)) return bad;
  const int failed = session.run();
  detail::forget_lost_data();
  return failed;
}

}  // namespace ooc::testing
