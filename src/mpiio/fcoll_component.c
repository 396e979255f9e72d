/* The `fcoll` component "ooc" of Open MPI's OMPIO: collective transfers of files that the `fs` component "ooc" has opened, by
 * the store's own collective I/O.  An error on one rank is returned on all; OMPIO's own components return none, and leave
 * the rank that had it in a state in which the next MPI_File_sync waits for ever.
 *
 * OMPIO decodes datatypes and view, and moves the file pointer, as for an independent transfer: the `fbtl` component
 * meanwhile only notes the extents. */
#include "ompi_config.h"

#include "mpi.h"
#include "mpiio/component.h"
#include "mpiio/file_handle.h"
#include "ompi/constants.h"
#include "ompi/mca/common/ompio/common_ompio.h"
#include "ompi/mca/fcoll/base/base.h"
#include "ompi/mca/fcoll/fcoll.h"

static int together(ompio_file_t* fh, int write, int decoded, ompi_status_public_t* status) {
  struct ooc_mpiio_file* file = fh->f_fs_ptr;
  size_t bytes = 0;
  const int ret = file->calls->together(file, fh->f_comm, write, fh->f_atomicity, decoded, &bytes);
  if (MPI_STATUS_IGNORE != status) status->_ucount = bytes;
  return ret;
}

static int read_all(ompio_file_t* fh, void* buf, int count, struct ompi_datatype_t* datatype,
                    ompi_status_public_t* status) {
  struct ooc_mpiio_file* file = fh->f_fs_ptr;
  ompi_status_public_t ignored;
  if (fh->f_amode & MPI_MODE_WRONLY) return MPI_ERR_ACCESS; /* on all ranks */
  file->calls->begin_together(file);
  return together(fh, 0, mca_common_ompio_file_read(fh, buf, count, datatype, &ignored), status);
}

static int write_all(ompio_file_t* fh, const void* buf, int count, struct ompi_datatype_t* datatype,
                     ompi_status_public_t* status) {
  struct ooc_mpiio_file* file = fh->f_fs_ptr;
  ompi_status_public_t ignored;
  if (fh->f_amode & MPI_MODE_RDONLY) return MPI_ERR_READ_ONLY; /* on all ranks */
  file->calls->begin_together(file);
  return together(fh, 1, mca_common_ompio_file_write(fh, buf, count, datatype, &ignored), status);
}

static int module_init(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static int module_finalize(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

/* OMPIO makes independent transfers of nonblocking collective ones where a component has none. */
static mca_fcoll_base_module_t module = {
    .fcoll_module_init = module_init,
    .fcoll_module_finalize = module_finalize,
    .fcoll_file_read_all = read_all,
    .fcoll_file_write_all = write_all,
};

static struct mca_fcoll_base_module_1_0_0_t* file_query(ompio_file_t* fh, int* priority) {
  if (!ooc_mpiio_is_our_component(fh->f_fbtl_component)) return NULL;
  *priority = 200;
  return &module;
}

__attribute__((visibility("default"))) mca_fcoll_base_component_2_0_0_t mca_fcoll_ooc_component = {
    .fcollm_version =
        {
            MCA_FCOLL_BASE_VERSION_2_0_0,
            .mca_component_name = "ooc",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = ooc_mpiio_component_open,
        },
    .fcollm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fcollm_init_query = ooc_mpiio_init_query,
    .fcollm_file_query = file_query,
    .fcollm_file_unquery = ooc_mpiio_file_unquery,
};
