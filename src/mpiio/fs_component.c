/* The `fs` component "ooc" of Open MPI's OMPIO: opens, resizes, syncs and removes files whose names begin with "ooc:".
 *
 * Calls that all ranks make end the same on all of them.  OMPIO's own barriers count on that: a rank that fails alone
 * would leave the others waiting. */
#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "mpiio/component.h"
#include "mpiio/file_handle.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/info/info.h"
#include "ompi/mca/common/ompio/common_ompio.h"
#include "ompi/mca/fs/base/base.h"
#include "ompi/mca/fs/fs.h"

/* A name that stands for nothing: see keep_from_ompio(). */
static const char nothing[] = "ooc:?removed";

/* OMPIO's component "lockedfile" writes the name with an appendix into 256 bytes, whatever its length. */
enum { longest_name = 230 };

static struct ooc_mpiio_file* handle_of(ompio_file_t* fh) { return fh->f_fs_ptr; }

/* After closing, OMPIO removes f_fullfilename where that is asked for: on each rank, also of a file that was not
 * opened, and for names that are no paths with the current folder before them.  We have done it, or must not. */
static void keep_from_ompio(ompio_file_t* fh) {
  char* name = strdup(nothing);
  if (NULL == name) return;
  free(fh->f_fullfilename);
  fh->f_fullfilename = name;
}

/* What rank 0 passes, on every rank. */
static int told_by_first(ompio_file_t* fh, int value) {
  const int ret =
      fh->f_comm->c_coll->coll_bcast(&value, 1, MPI_INT, OMPIO_ROOT, fh->f_comm, fh->f_comm->c_coll->coll_bcast_module);
  return OMPI_SUCCESS != ret ? ret : value;
}

/* The greatest error of all ranks: MPI_SUCCESS, which is 0, if none has one. */
static int told_by_all(ompio_file_t* fh, int value) {
  int greatest = value;
  const int ret = fh->f_comm->c_coll->coll_allreduce(&value, &greatest, 1, MPI_INT, MPI_MAX, fh->f_comm,
                                                     fh->f_comm->c_coll->coll_allreduce_module);
  return OMPI_SUCCESS != ret ? ret : greatest;
}

static const char* hint(struct opal_info_t* info, const char* key, char* value) {
  int flag = 0;
  if (NULL == info || OMPI_SUCCESS != opal_info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &flag) || !flag) return NULL;
  return value;
}

static int file_open(struct ompi_communicator_t* comm, const char* filename, int amode, struct opal_info_t* info,
                     ompio_file_t* fh) {
  char factor[MPI_MAX_INFO_VAL] = "", unit[MPI_MAX_INFO_VAL] = "", device[MPI_MAX_INFO_VAL] = "";
  const struct ooc_mpiio_opening opening = {
      .name = filename,
      .create = 0 != (amode & MPI_MODE_CREATE),
      .exclusive = 0 != (amode & MPI_MODE_CREATE) && 0 != (amode & MPI_MODE_EXCL),
      .write = 0 == (amode & MPI_MODE_RDONLY),
      .striping_factor = hint(info, "striping_factor", factor),
      .striping_unit = hint(info, "striping_unit", unit),
      .start_iodevice = hint(info, "start_iodevice", device),
  };
  struct ooc_mpiio_file* file = NULL;
  uint64_t id = 0;
  int ret = MPI_SUCCESS;
  (void)comm;

  keep_from_ompio(fh);
  if (OMPIO_ROOT == fh->f_rank) ret = ooc_mpiio_open_first(&opening, &file, &id);
  ret = told_by_first(fh, ret);
  if (MPI_SUCCESS == ret) {
    ret = fh->f_comm->c_coll->coll_bcast(&id, 1, MPI_UINT64_T, OMPIO_ROOT, fh->f_comm,
                                         fh->f_comm->c_coll->coll_bcast_module);
    if (OMPI_SUCCESS == ret && OMPIO_ROOT != fh->f_rank) ret = ooc_mpiio_open_as_first(&opening, id, &file);
    ret = told_by_all(fh, ret);
  }
  if (MPI_SUCCESS != ret) {
    if (NULL != file) {
      ooc_mpiio_leave(file);
      ooc_mpiio_close(file, 0);
    }
    return ret;
  }
  fh->f_fs_ptr = file;
  fh->f_stripe_size = 0;
  fh->f_stripe_count = 1;
  fh->f_flags |= OMPIO_LOCK_NEVER;
  return OMPI_SUCCESS;
}

static int file_close(ompio_file_t* fh) {
  struct ooc_mpiio_file* file = handle_of(fh);
  const int remove = 0 != (fh->f_amode & MPI_MODE_DELETE_ON_CLOSE);
  const int first = OMPIO_ROOT == fh->f_rank;
  int ret, closed;

  if (NULL == file) return OMPI_SUCCESS; /* it was not opened, on any rank */
  fh->f_fs_ptr = NULL;
  ret = ooc_mpiio_take_failure(file);
  closed = ooc_mpiio_leave(file);
  if (MPI_SUCCESS == ret) ret = closed;
  fh->f_comm->c_coll->coll_barrier(fh->f_comm, fh->f_comm->c_coll->coll_barrier_module);
  closed = ooc_mpiio_close(file, first && !remove);
  if (MPI_SUCCESS == ret) ret = closed;
  if (remove) {
    closed = told_by_first(fh, first ? ooc_mpiio_remove(fh->f_filename) : MPI_SUCCESS);
    if (MPI_SUCCESS == ret) ret = closed;
  }
  return ret;
}

static int file_delete(char* filename, struct opal_info_t* info) {
  (void)info;
  return 0 == strcmp(filename, nothing) ? MPI_SUCCESS : ooc_mpiio_remove(filename);
}

static int file_set_size(ompio_file_t* fh, OMPI_MPI_OFFSET_TYPE size) {
  int ret = MPI_SUCCESS;
  if (OMPIO_ROOT == fh->f_rank) ret = ooc_mpiio_resize(handle_of(fh), (uint64_t)size);
  ret = told_by_first(fh, ret);
  ooc_mpiio_forget_size(handle_of(fh));
  return ret;
}

static int file_get_size(ompio_file_t* fh, OMPI_MPI_OFFSET_TYPE* size) {
  uint64_t bytes = 0;
  const int ret = ooc_mpiio_size(handle_of(fh), &bytes);
  *size = (OMPI_MPI_OFFSET_TYPE)bytes;
  return ret;
}

/* OMPIO has waited for all ranks: what they have written is acknowledged, and one of them makes it durable. */
static int file_sync(ompio_file_t* fh) {
  const int failed = ooc_mpiio_take_failure(handle_of(fh));
  const int synced = told_by_first(fh, OMPIO_ROOT == fh->f_rank ? ooc_mpiio_sync(handle_of(fh)) : MPI_SUCCESS);
  ooc_mpiio_forget_size(handle_of(fh));
  return MPI_SUCCESS != failed ? failed : synced;
}

static int module_init(ompio_file_t* fh) {
  fh->f_fstype = NONE; /* other components that were asked have said what they would be */
  if (strlen(fh->f_filename) <= longest_name) return OMPI_SUCCESS;
  if (OMPIO_ROOT == fh->f_rank)
    ooc_mpiio_say("MPI-IO: the name of the file, with its store, is too long for Open MPI: at most 230 bytes; "
                  "set OOC_STORE and leave the store out");
  return MPI_ERR_BAD_FILE;
}

static int module_finalize(ompio_file_t* fh) {
  (void)fh;
  return OMPI_SUCCESS;
}

static mca_fs_base_module_t module = {
    .fs_module_init = module_init,
    .fs_module_finalize = module_finalize,
    .fs_file_open = file_open,
    .fs_file_close = file_close,
    .fs_file_delete = file_delete,
    .fs_file_set_size = file_set_size,
    .fs_file_get_size = file_get_size,
    .fs_file_sync = file_sync,
};

static int component_open(void) {
  const char* wrong = ooc_mpiio_wrong_version();
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (NULL == wrong) return OMPI_SUCCESS;
  if (NULL == rank || 0 == strcmp(rank, "0")) ooc_mpiio_say(wrong);
  return OMPI_ERR_NOT_AVAILABLE;
}

static struct mca_fs_base_module_1_0_0_t* file_query(ompio_file_t* fh, int* priority) {
  if (NULL == fh->f_filename || !ooc_mpiio_is_ours(fh->f_filename)) return NULL;
  *priority = 100;
  return &module;
}

__attribute__((visibility("default"))) mca_fs_base_component_2_0_0_t mca_fs_ooc_component = {
    .fsm_version =
        {
            MCA_FS_BASE_VERSION_2_0_0,
            .mca_component_name = "ooc",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = component_open,
        },
    .fsm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fsm_init_query = ooc_mpiio_init_query,
    .fsm_file_query = file_query,
    .fsm_file_unquery = ooc_mpiio_file_unquery,
};
