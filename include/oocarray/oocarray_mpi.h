/* Groups of MPI ranks for C; link with oocarray::mpi.  Fortran has them by the module oocarray_mpi.f90.
 *
 *     ooc_group* g;
 *     check(ooc_group_create_mpi(MPI_COMM_WORLD, &g));
 *     ooc_array_options o = {.group = g};
 *     check(ooc_array_create(rt, s, "a", "f8", 2, extents, &o, &a));   // collective
 *     ... each rank writes its rows (ooc_array_local_rows()) ...
 *     check(ooc_array_sync(a, 0));                                     // collective: others see them
 *
 * mpi.hpp says what holds of groups. */
#ifndef OOCARRAY_OOCARRAY_MPI_H
#define OOCARRAY_OOCARRAY_MPI_H

#include <mpi.h>

#include "oocarray/oocarray.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over the communicator, of which it makes one of its own.  MPI was started with MPI_THREAD_MULTIPLE or less,
 * as mpi.hpp says. */
int ooc_group_create_mpi(MPI_Comm comm, ooc_group** g);
/* The same of a communicator of Fortran. */
int ooc_group_create_mpi_f(MPI_Fint comm, ooc_group** g);

#ifdef __cplusplus
}
#endif

#endif
