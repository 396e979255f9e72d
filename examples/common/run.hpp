// The outermost function of every example: exceptions become messages and exit statuses.
//
//     0  the result is right        1  it is wrong, or reading or writing failed
//     2  an option that cannot be; nothing was changed
#pragma once

#include <cstdio>
#include <exception>

#include "common/command_line.hpp"
#include "oocarray/error.hpp"

namespace examples {

template <class F>
int run(const char* program, F&& f) {
  try {
    return f();
  } catch (const bad_option& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 2;
  } catch (const ooc::usage_error& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

}  // namespace examples
