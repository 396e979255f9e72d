// The calls of oocarray_mpi.h.
#include "c/codes.hpp"
#include "oocarray/mpi.hpp"
#include "oocarray/oocarray_mpi.h"

extern "C" {

int ooc_group_create_mpi(MPI_Comm comm, ooc_group** g) {
  return ooc::c::guarded([&] {
    ooc_group*& made = *ooc::c::given(g, "g");
    made = new ooc_group{ooc::mpi_group(comm)};
  });
}

int ooc_group_create_mpi_f(MPI_Fint comm, ooc_group** g) { return ooc_group_create_mpi(MPI_Comm_f2c(comm), g); }

}  // extern "C"
