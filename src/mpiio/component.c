#include "mpiio/component.h"

#include "ompi_config.h"

#include <stdio.h>
#include <string.h>

#include "mpi.h"
#include "ompi/constants.h"
#include "ompi/mca/common/ompio/common_ompio.h"

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

int ooc_mpiio_component_open(void) {
  return NULL == ooc_mpiio_wrong_version() ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

int ooc_mpiio_init_query(bool progress_threads, bool mpi_threads) {
  (void)progress_threads;
  (void)mpi_threads;
  return OMPI_SUCCESS;
}

int ooc_mpiio_file_unquery(struct ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

bool ooc_mpiio_is_our_component(const mca_base_component_t* chosen) {
  return NULL != chosen && 0 == strcmp(chosen->mca_component_name, "ooc");
}
