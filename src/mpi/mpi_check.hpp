// MPI's return codes become exceptions here.
#pragma once

#include <mpi.h>

namespace ooc::mpi {

/// Throws io_error naming `operation` where `code` is not MPI_SUCCESS.
void check(int code, const char* operation);

}  // namespace ooc::mpi
