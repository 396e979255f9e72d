/* What OMPIO asks of every component, whatever it is for. */
#ifndef OOC_MPIIO_COMPONENT_H
#define OOC_MPIIO_COMPONENT_H

#include <stdbool.h>

struct mca_base_component_2_1_0_t;
struct ompio_file_t;

/* Whether the Open MPI that loads the component is the one that it was built for: OMPIO's structures, which components
 * read and write, change between minor versions.  NULL where it is; else a line that says why not, valid until the next
 * call. */
const char* ooc_mpiio_wrong_version(void);
/* Where it is another one, the component is not used; the fs component says why. */
int ooc_mpiio_component_open(void);

int ooc_mpiio_init_query(bool progress_threads, bool mpi_threads);
int ooc_mpiio_file_unquery(struct ompio_file_t*);

/* Whether what OMPIO has chosen for a file before (NULL: nothing) is one of ours. */
bool ooc_mpiio_is_our_component(const struct mca_base_component_2_1_0_t*);

#endif
