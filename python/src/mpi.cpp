// The module oocarray._mpi: the ranks of a communicator of mpi4py as a process_group.
//
// A module of its own, so that oocarray works where there is no MPI: it alone is linked with libmpi, and it is imported
// when somebody gives a communicator.  It has the type of what it gives from oocarray._core.
#include "oocarray/mpi.hpp"

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace py = pybind11;

namespace {

/// `handle`: the address of an MPI_Comm, as mpi4py's MPI._addressof gives it.
std::shared_ptr<ooc::process_group> group(std::uintptr_t handle, double deadline) {
  const MPI_Comm comm = *reinterpret_cast<const MPI_Comm*>(handle);
  const py::gil_scoped_release r;
  return ooc::mpi_group(comm, {.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(deadline * 1000))});
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

PYBIND11_MODULE(_mpi, m) {
  m.doc() = "Communicators of mpi4py as groups of processes.";
  py::module_::import("oocarray._core");
  m.attr("handle_bytes") = sizeof(MPI_Comm);
  m.def("group", &group);
  m.def("library_version", &library_version);
}
