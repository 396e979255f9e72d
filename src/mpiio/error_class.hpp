// An exception as one of MPI's error classes.
#pragma once

#include <system_error>

namespace ooc::mpiio {

int error_class(const std::error_code& code);

/// Of the exception that is being handled.  A line on standard error says more: what was being done, `what`, and why it
/// failed.  A file that is not there, or is there already, needs no line.  No line either where `what` is null.
int report(const char* what) noexcept;

}  // namespace ooc::mpiio
