/* Whether the Open MPI that loads a component is the one that it was built for: OMPIO's structures, which components
 * read and write, change between minor versions. */
#ifndef OOC_MPIIO_COMPONENT_VERSION_H
#define OOC_MPIIO_COMPONENT_VERSION_H

/* NULL where it is; else a line that says why not, valid until the next call. */
const char* ooc_mpiio_wrong_version(void);

#endif
