#include "mpiio/error_class.hpp"

#include <mpi.h>

#include <cerrno>
#include <exception>
#include <new>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/log.hpp"

namespace ooc::mpiio {

int error_class(const std::error_code& code) {
  if (!code) return MPI_SUCCESS;
  if (code.category() == error_category()) {
    if (code == errc::busy || code == errc::dirty) return MPI_ERR_FILE_IN_USE;
    if (code == errc::not_a_store) return MPI_ERR_BAD_FILE;
    if (code == errc::invalid_request) return MPI_ERR_ARG;
    return MPI_ERR_IO;
  }
  switch (code.default_error_condition().value()) {
    case ENOENT: return MPI_ERR_NO_SUCH_FILE;
    case EEXIST: return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM: return MPI_ERR_ACCESS;
    case EROFS:
    case EBADF:  // written to, and open for reading only
      return MPI_ERR_READ_ONLY;
    case ENOSPC: return MPI_ERR_NO_SPACE;
    case EDQUOT: return MPI_ERR_QUOTA;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG: return MPI_ERR_BAD_FILE;
    case EBUSY:
    case ETXTBSY: return MPI_ERR_FILE_IN_USE;
    case ENOMEM: return MPI_ERR_NO_MEM;
    default: return MPI_ERR_IO;
  }
}

int report(const char* what) noexcept {
  int found = MPI_ERR_OTHER;
  std::string why;
  try {
    try {
      throw;
    } catch (const std::system_error& e) {
      found = error_class(e.code());
      why = e.what();
    } catch (const std::bad_alloc& e) {
      found = MPI_ERR_NO_MEM;
      why = e.what();
    } catch (const std::exception& e) {
      why = e.what();
    }
    if (what != nullptr && found != MPI_ERR_NO_SUCH_FILE && found != MPI_ERR_FILE_EXISTS)
      detail::log_error("MPI-IO: " + std::string(what) + ": " + why);
  } catch (...) {
    // There is no memory for the line.
  }
  return found;
}

}  // namespace ooc::mpiio
