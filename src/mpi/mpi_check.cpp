#include "mpi/mpi_check.hpp"

#include <string>

#include "oocarray/error.hpp"

namespace ooc::mpi {

void check(int code, const char* operation) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw io_error::in_full(std::make_error_code(std::errc::io_error), std::string(operation) + " failed: " + text);
}

}  // namespace ooc::mpi
