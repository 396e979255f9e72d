/* The `fbtl` component "ooc" of Open MPI's OMPIO: transfers of files that the `fs` component "ooc" has opened.  Each list of
 * extents that OMPIO makes of memory and file view is one list request to the store. */
#include "ompi_config.h"

#include "mpi.h"
#include "mpiio/component.h"
#include "mpiio/file_handle.h"
#include "ompi/constants.h"
#include "ompi/mca/common/ompio/common_ompio.h"
#include "ompi/mca/common/ompio/common_ompio_request.h"
#include "ompi/mca/fbtl/base/base.h"
#include "ompi/mca/fbtl/fbtl.h"

_Static_assert(sizeof(struct ooc_mpiio_extent) == sizeof(mca_common_ompio_io_array_t) &&
                   offsetof(struct ooc_mpiio_extent, memory) == offsetof(mca_common_ompio_io_array_t, memory_address) &&
                   offsetof(struct ooc_mpiio_extent, offset) == offsetof(mca_common_ompio_io_array_t, offset) &&
                   offsetof(struct ooc_mpiio_extent, length) == offsetof(mca_common_ompio_io_array_t, length),
               "an extent is what OMPIO has in its lists");

static const struct ooc_mpiio_extent* extents_of(ompio_file_t* fh) {
  return (const struct ooc_mpiio_extent*)(const void*)fh->f_io_array;
}

/* OMPIO drops the error of a blocking transfer: the status then says 0 bytes, and the next sync or close fails.  While
 * our `fcoll` has OMPIO decode a collective one, nothing is transferred here. */
static ssize_t transfer(ompio_file_t* fh, int write) {
  struct ooc_mpiio_file* file = fh->f_fs_ptr;
  return file->calls->transfer(file, write, extents_of(fh), fh->f_num_of_io_entries, fh->f_atomicity);
}

static ssize_t read_list(ompio_file_t* fh) { return transfer(fh, 0); }
static ssize_t write_list(ompio_file_t* fh) { return transfer(fh, 1); }

static bool progress(mca_ompio_request_t* req) {
  const struct ooc_mpiio_transfer* t = req->req_data;
  ssize_t bytes = 0;
  int error = MPI_ERR_NO_MEM;
  if (NULL != t && !t->calls->ended(t, &bytes, &error)) return false;
  req->req_ompi.req_status.MPI_ERROR = error;
  req->req_ompi.req_status._ucount = (size_t)bytes;
  return true;
}

static void request_free(mca_ompio_request_t* req) {
  struct ooc_mpiio_transfer* t = req->req_data;
  if (NULL != t) t->calls->release(t);
  req->req_data = NULL; /* OMPIO would free() it */
}

/* OMPIO looks at the request alone: what fails at once comes out of its progress as well. */
static ssize_t start(ompio_file_t* fh, ompi_request_t* request, int write) {
  struct ooc_mpiio_file* file = fh->f_fs_ptr;
  mca_ompio_request_t* req = (mca_ompio_request_t*)request;
  /* Whose error handler MPI_Wait is to call: OMPIO leaves that out, and MPI_Wait would end by a signal. */
  req->req_ompi.req_mpi_object.file = NULL != fh->f_fh ? fh->f_fh : &ompi_mpi_file_null.file;
  req->req_data = file->calls->start(file, write, extents_of(fh), fh->f_num_of_io_entries, fh->f_atomicity);
  req->req_progress_fn = progress;
  req->req_free_fn = request_free;
  return OMPI_SUCCESS;
}

static ssize_t start_read(ompio_file_t* fh, ompi_request_t* request) { return start(fh, request, 0); }
static ssize_t start_write(ompio_file_t* fh, ompi_request_t* request) { return start(fh, request, 1); }

static int module_init(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static int module_finalize(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static mca_fbtl_base_module_t module = {
    .fbtl_module_init = module_init,
    .fbtl_module_finalize = module_finalize,
    .fbtl_preadv = read_list,
    .fbtl_ipreadv = start_read,
    .fbtl_pwritev = write_list,
    .fbtl_ipwritev = start_write,
    .fbtl_progress = progress,
    .fbtl_request_free = request_free,
};

static struct mca_fbtl_base_module_1_0_0_t* file_query(ompio_file_t* fh, int* priority) {
  if (!ooc_mpiio_is_our_component(fh->f_fs_component)) return NULL;
  *priority = 100;
  return &module;
}

__attribute__((visibility("default"))) mca_fbtl_base_component_2_0_0_t mca_fbtl_ooc_component = {
    .fbtlm_version =
        {
            MCA_FBTL_BASE_VERSION_2_0_0,
            .mca_component_name = "ooc",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = ooc_mpiio_component_open,
        },
    .fbtlm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fbtlm_init_query = ooc_mpiio_init_query,
    .fbtlm_file_query = file_query,
    .fbtlm_file_unquery = ooc_mpiio_file_unquery,
};
