/* Preloaded: the version of an Open MPI that is another than it is. */
#include <mpi.h>
#include <string.h>

int MPI_Get_library_version(char* version, int* length) {
  strcpy(version, "Open MPI v4.2.7, package: a test, ident: 4.2.7");
  *length = (int)strlen(version);
  return MPI_SUCCESS;
}
