/* What the components for Open MPI's OMPIO (C) call of ours (C++).
 *
 * mca_fs_ooc.so holds the implementation, with the store's client in it.  The other components must not hold a second
 * one: they find their calls in the table that every open file begins with.
 *
 * Functions that return `int` return MPI_SUCCESS or one of MPI's error classes, for which a line on standard error
 * gives the reason.  None throws.  A file may be used by several threads at once, but for ooc_mpiio_close(). */
#ifndef OOC_MPIIO_FILE_HANDLE_H
#define OOC_MPIIO_FILE_HANDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes in memory and their place in the file; the same members as OMPIO's mca_common_ompio_io_array_t. */
struct ooc_mpiio_extent {
  void* memory;
  void* offset; /* a number, as OMPIO has it */
  size_t length;
};

struct ooc_mpiio_file;
struct ooc_mpiio_transfer;
struct ompi_communicator_t;

struct ooc_mpiio_calls {
  /* Transfers the extents by one list request, and waits.  The bytes that were transferred (for reads: up to the end
   * of the file), or -1.  `atomic`: as a whole before or after the other atomic transfers of the file. */
  ssize_t (*transfer)(struct ooc_mpiio_file*, int write, const struct ooc_mpiio_extent*, int count, int atomic);
  /* The same without waiting; the extents themselves are not needed any more on return.  NULL: not enough memory. */
  struct ooc_mpiio_transfer* (*start)(struct ooc_mpiio_file*, int write, const struct ooc_mpiio_extent*, int count,
                                      int atomic);
  /* Whether it has ended; if so, what came of it. */
  int (*ended)(const struct ooc_mpiio_transfer*, ssize_t* bytes, int* error_class);
  /* The caller gives its handle up; a transfer that has not ended goes on. */
  void (*release)(struct ooc_mpiio_transfer*);

  /* From now on `transfer` only notes the extents, until `together`. */
  void (*begin_together)(struct ooc_mpiio_file*);
  /* Transfers what was noted; all ranks of the communicator, always the same one for a file, call it, each with extents
   * of its own or none.  `failed`: the caller has none because of this error.  Ends the same on all ranks. */
  int (*together)(struct ooc_mpiio_file*, struct ompi_communicator_t*, int write, int atomic, int failed,
                  size_t* bytes);

  /* From now on the file has a shared pointer, at 0: the same one for all ranks that give the same number, and a number
   * that no other opening gives. */
  int (*share_pointer)(struct ooc_mpiio_file*, uint64_t token);
  /* Moves it on by so many bytes, and says where it was. */
  int (*advance_pointer)(struct ooc_mpiio_file*, uint64_t bytes, uint64_t* before);
  int (*move_pointer)(struct ooc_mpiio_file*, uint64_t position);
  /* Nobody needs it any more. */
  int (*remove_pointer)(struct ooc_mpiio_file*);
};

/* An open file, and a transfer, begin like this. */
struct ooc_mpiio_file {
  const struct ooc_mpiio_calls* calls;
};
struct ooc_mpiio_transfer {
  const struct ooc_mpiio_calls* calls;
};

struct ooc_mpiio_opening {
  const char* name; /* as the program gave it: see file_name.hpp */
  int create, exclusive, write;
  /* Hints, as the program gave them; NULL: not given. */
  const char *striping_factor, *striping_unit, *start_iodevice;
};

/* True for the names of files in a store. */
int ooc_mpiio_is_ours(const char* name);

/* One rank opens the file and is told its number, by which the others then find it. */
int ooc_mpiio_open_first(const struct ooc_mpiio_opening*, struct ooc_mpiio_file**, uint64_t* id);
int ooc_mpiio_open_as_first(const struct ooc_mpiio_opening*, uint64_t id, struct ooc_mpiio_file**);

int ooc_mpiio_size(struct ooc_mpiio_file*, uint64_t* size);
int ooc_mpiio_resize(struct ooc_mpiio_file*, uint64_t size);
/* Another rank has changed the size. */
void ooc_mpiio_forget_size(struct ooc_mpiio_file*);
/* Makes durable what all ranks have written. */
int ooc_mpiio_sync(struct ooc_mpiio_file*);
/* The class of the first blocking transfer that failed since the last call, whose error OMPIO has dropped. */
int ooc_mpiio_take_failure(struct ooc_mpiio_file*);

/* Waits for transfers, and lets others have the file: it is not written any more. */
int ooc_mpiio_leave(struct ooc_mpiio_file*);
/* `last`: every rank has left, and this one gives back what was reserved past the end of the file. */
int ooc_mpiio_close(struct ooc_mpiio_file*, int last);

int ooc_mpiio_remove(const char* name);

/* One line on standard error. */
void ooc_mpiio_say(const char* line);

#ifdef __cplusplus
}
#endif
#endif
