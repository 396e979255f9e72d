#include "mpiio/component_version.h"

#include <mpi.h>
#include <stdio.h>

const char* ooc_mpiio_wrong_version(void) {
  static char line[256];
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0, minor = 0;
  MPI_Get_library_version(version, &length);
  if (sscanf(version, "Open MPI v%d.%d", &major, &minor) == 2 && major == OMPI_MAJOR_VERSION &&
      minor == OMPI_MINOR_VERSION)
    return NULL;
  snprintf(line, sizeof line,
           "MPI-IO: the components for files in a store were built for Open MPI %d.%d and are not used: this is "
           "'%.60s'; build oocarray with it, or use `ooc mount`",
           OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, version);
  return line;
}
