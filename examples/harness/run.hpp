// The outermost function of every example: exceptions become messages and exit statuses.
//
//     0  the result is right        1  it is wrong, or reading or writing failed
//     2  an option that cannot be; nothing was changed
#pragma once

#include <cstdio>
#include <exception>

#include "harness/command_line.hpp"
#include "harness/ranks.hpp"
#include "oocarray/error.hpp"

namespace examples {

/// f(argc, argv, ranks).  A failure on one rank ends all of them.
template <class F>
int run(const char* program, int argc, char** argv, F&& f) {
  const ranks all(argc, argv);
  int status = 1;
  try {
    return f(argc, argv, all);
  } catch (const bad_option& e) {  // the same on all ranks
    if (all.leads()) std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 2;
  } catch (const ooc::usage_error& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    status = 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
  }
  all.abort(status);
  return status;
}

}  // namespace examples
