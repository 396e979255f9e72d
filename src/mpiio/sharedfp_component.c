/* The `sharedfp` component "ooc" of Open MPI's OMPIO: shared pointers of files that the `fs` component "ooc" has
 * opened, for ranks of several hosts.  The pointer is in the store (shared_pointer.hpp).  Where all ranks are on one
 * host, OMPIO's own component `sm`, which keeps it in memory, has a higher priority.
 *
 * As OMPIO's components do, this one counts the position in bytes of the view, and MPI_SEEK_END from the size of the
 * file. */
#include "ompi_config.h"

#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"
#include "mpiio/component.h"
#include "mpiio/file_handle.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/common/ompio/common_ompio.h"
#include "ompi/mca/sharedfp/base/base.h"
#include "ompi/mca/sharedfp/sharedfp.h"
#include "ompi/request/request.h"

/* Below `sm` (30), above `individual` and `lockedfile` (10). */
enum { our_priority = 25 };

static struct ooc_mpiio_file* handle_of(ompio_file_t* fh) { return fh->f_fs_ptr; }

static int told_by(ompio_file_t* fh, int rank, void* value, int bytes) {
  return fh->f_comm->c_coll->coll_bcast(value, bytes, MPI_BYTE, rank, fh->f_comm,
                                        fh->f_comm->c_coll->coll_bcast_module);
}

static int64_t bytes_of(int count, struct ompi_datatype_t* datatype) {
  size_t size = 0;
  opal_datatype_type_size(&datatype->super, &size);
  return (int64_t)size * count;
}

/* A number that no other opening has. */
static uint64_t new_token(void) {
  uint64_t token = 0;
  struct timespec now;
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const int known = fd >= 0 && read(fd, &token, sizeof token) == (ssize_t)sizeof token;
  if (fd >= 0) close(fd);
  if (known) return token;
  clock_gettime(CLOCK_REALTIME, &now);
  return ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec) * 2654435761u + (uint64_t)getpid();
}

static int file_open(struct ompi_communicator_t* comm, const char* filename, int amode, struct opal_info_t* info,
                     ompio_file_t* fh) {
  uint64_t token = OMPIO_ROOT == fh->f_rank ? new_token() : 0;
  const int ret = told_by(fh, OMPIO_ROOT, &token, sizeof token);
  (void)comm;
  (void)filename;
  (void)amode;
  (void)info;
  return OMPI_SUCCESS != ret ? ret : handle_of(fh)->calls->share_pointer(handle_of(fh), token);
}

static int file_close(ompio_file_t* fh) {
  if (NULL == handle_of(fh) || OMPIO_ROOT != fh->f_rank) return OMPI_SUCCESS;
  return handle_of(fh)->calls->remove_pointer(handle_of(fh)); /* all ranks have come to the close */
}

/* In bytes; OMPIO divides. */
static int get_position(ompio_file_t* fh, OMPI_MPI_OFFSET_TYPE* offset) {
  uint64_t at = 0;
  const int ret = handle_of(fh)->calls->advance_pointer(handle_of(fh), 0, &at);
  *offset = (OMPI_MPI_OFFSET_TYPE)at;
  return ret;
}

static int move_pointer(ompio_file_t* fh, OMPI_MPI_OFFSET_TYPE offset, int whence) {
  OMPI_MPI_OFFSET_TYPE from = 0, by = offset * (OMPI_MPI_OFFSET_TYPE)fh->f_etype_size;
  int ret = MPI_SUCCESS;
  if (MPI_SEEK_CUR == whence)
    ret = get_position(fh, &from);
  else if (MPI_SEEK_END == whence)
    ret = mca_common_ompio_file_get_size(fh, &from);
  else if (MPI_SEEK_SET != whence)
    ret = MPI_ERR_ARG;
  if (MPI_SUCCESS != ret) return ret;
  if (by < -from) return MPI_ERR_ARG;
  return handle_of(fh)->calls->move_pointer(handle_of(fh), (uint64_t)(from + by));
}

/* All ranks call it; none goes on before it is done and all have called it.  OMPIO counts on that: each rank that opens a
 * file to append to it asks for the size first, and the first one to go on may make the file longer. */
static int seek(ompio_file_t* fh, OMPI_MPI_OFFSET_TYPE offset, int whence) {
  const int mine = OMPIO_ROOT == fh->f_rank ? move_pointer(fh, offset, whence) : MPI_SUCCESS;
  int done = mine;
  const int ret = fh->f_comm->c_coll->coll_allreduce(&mine, &done, 1, MPI_INT, MPI_MAX, fh->f_comm,
                                                     fh->f_comm->c_coll->coll_allreduce_module);
  return OMPI_SUCCESS != ret ? ret : done;
}

/* Where this rank's next `count` elements are, in etypes. */
static int take(ompio_file_t* fh, int count, struct ompi_datatype_t* datatype, OMPI_MPI_OFFSET_TYPE* offset) {
  uint64_t at = 0;
  const int ret = handle_of(fh)->calls->advance_pointer(handle_of(fh), (uint64_t)bytes_of(count, datatype), &at);
  *offset = (OMPI_MPI_OFFSET_TYPE)(at / fh->f_etype_size);
  return ret;
}

/* The same for all ranks, one after the other: the last one, who knows what all want, takes it for all. */
static int take_in_order(ompio_file_t* fh, int count, struct ompi_datatype_t* datatype, OMPI_MPI_OFFSET_TYPE* offset) {
  const int64_t mine = bytes_of(count, datatype);
  int64_t up_to_here = 0;
  struct {
    uint64_t at;
    int64_t done;
  } first = {0, MPI_SUCCESS};
  int ret = fh->f_comm->c_coll->coll_scan(&mine, &up_to_here, 1, MPI_INT64_T, MPI_SUM, fh->f_comm,
                                          fh->f_comm->c_coll->coll_scan_module);
  if (OMPI_SUCCESS != ret) return ret;
  if (fh->f_rank == fh->f_size - 1)
    first.done = handle_of(fh)->calls->advance_pointer(handle_of(fh), (uint64_t)up_to_here, &first.at);
  ret = told_by(fh, fh->f_size - 1, &first, sizeof first);
  if (OMPI_SUCCESS != ret) return ret;
  *offset = (OMPI_MPI_OFFSET_TYPE)((first.at + (uint64_t)(up_to_here - mine)) / fh->f_etype_size);
  return (int)first.done;
}

static int read_shared(ompio_file_t* fh, void* buf, int count, struct ompi_datatype_t* datatype,
                       ompi_status_public_t* status) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_read_at(fh, offset, buf, count, datatype, status);
}

static int write_shared(ompio_file_t* fh, const void* buf, int count, struct ompi_datatype_t* datatype,
                        ompi_status_public_t* status) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_write_at(fh, offset, buf, count, datatype, status);
}

static int start_read(ompio_file_t* fh, void* buf, int count, struct ompi_datatype_t* datatype,
                      ompi_request_t** request) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_iread_at(fh, offset, buf, count, datatype, request);
}

static int start_write(ompio_file_t* fh, const void* buf, int count, struct ompi_datatype_t* datatype,
                       ompi_request_t** request) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_iwrite_at(fh, offset, buf, count, datatype, request);
}

static int read_ordered(ompio_file_t* fh, void* buf, int count, struct ompi_datatype_t* datatype,
                        ompi_status_public_t* status) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take_in_order(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_read_at_all(fh, offset, buf, count, datatype, status);
}

static int write_ordered(ompio_file_t* fh, const void* buf, int count, struct ompi_datatype_t* datatype,
                         ompi_status_public_t* status) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  const int ret = take_in_order(fh, count, datatype, &offset);
  return MPI_SUCCESS != ret ? ret : mca_common_ompio_file_write_at_all(fh, offset, buf, count, datatype, status);
}

static int read_ordered_begin(ompio_file_t* fh, void* buf, int count, struct ompi_datatype_t* datatype) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  int ret;
  if (fh->f_split_coll_in_use) return MPI_ERR_REQUEST;
  ret = take_in_order(fh, count, datatype, &offset);
  if (MPI_SUCCESS == ret)
    ret = mca_common_ompio_file_iread_at_all(fh, offset, buf, count, datatype, &fh->f_split_coll_req);
  fh->f_split_coll_in_use = MPI_SUCCESS == ret;
  return ret;
}

static int write_ordered_begin(ompio_file_t* fh, const void* buf, int count, struct ompi_datatype_t* datatype) {
  OMPI_MPI_OFFSET_TYPE offset = 0;
  int ret;
  if (fh->f_split_coll_in_use) return MPI_ERR_REQUEST;
  ret = take_in_order(fh, count, datatype, &offset);
  if (MPI_SUCCESS == ret)
    ret = mca_common_ompio_file_iwrite_at_all(fh, offset, buf, count, datatype, &fh->f_split_coll_req);
  fh->f_split_coll_in_use = MPI_SUCCESS == ret;
  return ret;
}

static int ordered_end(ompio_file_t* fh, ompi_status_public_t* status) {
  int ret;
  if (!fh->f_split_coll_in_use) return MPI_ERR_REQUEST;
  ret = ompi_request_wait(&fh->f_split_coll_req, status);
  fh->f_split_coll_in_use = false;
  return ret;
}

static int read_ordered_end(ompio_file_t* fh, void* buf, ompi_status_public_t* status) {
  (void)buf;
  return ordered_end(fh, status);
}

static int write_ordered_end(ompio_file_t* fh, const void* buf, ompi_status_public_t* status) {
  (void)buf;
  return ordered_end(fh, status);
}

static int module_init(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static int module_finalize(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static mca_sharedfp_base_module_t module = {
    .sharedfp_module_init = module_init,
    .sharedfp_module_finalize = module_finalize,
    .sharedfp_seek = seek,
    .sharedfp_get_position = get_position,
    .sharedfp_read = read_shared,
    .sharedfp_read_ordered = read_ordered,
    .sharedfp_read_ordered_begin = read_ordered_begin,
    .sharedfp_read_ordered_end = read_ordered_end,
    .sharedfp_iread = start_read,
    .sharedfp_write = write_shared,
    .sharedfp_write_ordered = write_ordered,
    .sharedfp_write_ordered_begin = write_ordered_begin,
    .sharedfp_write_ordered_end = write_ordered_end,
    .sharedfp_iwrite = start_write,
    .sharedfp_file_open = file_open,
    .sharedfp_file_close = file_close,
};

static struct mca_sharedfp_base_module_1_0_0_t* file_query(ompio_file_t* fh, int* priority) {
  if (!ooc_mpiio_is_our_component(fh->f_fs_component)) return NULL;
  *priority = our_priority;
  return &module;
}

__attribute__((visibility("default"))) mca_sharedfp_base_component_2_0_0_t mca_sharedfp_ooc_component = {
    .sharedfpm_version =
        {
            MCA_SHAREDFP_BASE_VERSION_2_0_0,
            .mca_component_name = "ooc",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = ooc_mpiio_component_open,
        },
    .sharedfpm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .sharedfpm_init_query = ooc_mpiio_init_query,
    .sharedfpm_file_query = file_query,
    .sharedfpm_file_unquery = ooc_mpiio_file_unquery,
};
