// The tests of metadata_suite.cpp need a store from the program that they are linked into.
#pragma once

#include <memory>

#include "support/name_space.hpp"

namespace ooc::testing {

/// Defined once in each program that runs the suite.
std::unique_ptr<name_space> make_name_space();

}  // namespace ooc::testing
