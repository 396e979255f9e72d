// What went wrong, as one of MPI's error classes.
#pragma once

#include <system_error>

namespace ooc::mpiio {

int error_class(const std::error_code& code);

/// Of the exception that is being handled, which is `what` with a line on standard error that says more; a file that
/// is not there, or is there already, needs no line.
int report(const char* what) noexcept;

}  // namespace ooc::mpiio
