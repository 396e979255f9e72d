/* oocarray for C and, by the module oocarray.f90 beside this file, for Fortran.
 *
 *     ooc_runtime* rt;
 *     ooc_store* s;
 *     ooc_array* a;
 *     size_t extents[2] = {20000, 20000};
 *     check(ooc_runtime_create(512u << 20, &rt));          // check(): prints ooc_error_text() and ends the program
 *     check(ooc_store_open("local:data", &s));
 *     check(ooc_array_create(rt, s, "a", "f8", 2, extents, NULL, &a));
 *     double (*u)[20000] = ooc_array_data(a);
 *     for (size_t i = 0; i < 20000; ++i)
 *       for (size_t j = 0; j < 20000; ++j) u[i][j] = i + j;   // elements are in memory when they are touched
 *     check(ooc_array_close(a));                              // writes back
 *
 * The arrays are those of C++ (ooc_array.hpp, any_array.hpp): what is said there of memory, files, durability and the
 * end of a process holds here.  Extents are in elements, the slowest dimension first, and elements lie in row-major
 * order. Fortran sees the same memory with its dimensions in reverse.
 *
 * Every function that returns an int returns 0, or why it failed: a positive number is an errno, a negative one an
 * ooc_code.  Then nothing was done that is not said, and ooc_error_text() has a sentence that names the thing and the
 * remedy.
 *
 * Any thread may call; one object is not closed while another thread uses it.  Close arrays before their runtime. */
#ifndef OOCARRAY_OOCARRAY_H
#define OOCARRAY_OOCARRAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As ooc::errc in error.hpp. */
enum ooc_code {
  OOC_INVALID_REQUEST = -1,
  OOC_TYPE_MISMATCH = -2,
  OOC_NOT_A_STORE = -3,
  OOC_CORRUPT = -4,
  OOC_TORN = -5,
  OOC_BUDGET_TOO_SMALL = -6,
  OOC_DIRTY = -7,
  OOC_BUSY = -8,
  OOC_CLOSED = -9,
  OOC_CONFLICT = -10,
  OOC_NOT_TOGETHER = -11,
  OOC_CUT_OFF = -12,
  OOC_SINGULAR = -13,
  OOC_OTHER = -100 /* an exception of another kind */
};

/* Of the last function that failed in this thread; valid until the next one fails.  "" before. */
const char* ooc_error_text(void);

/* --- The runtime: one memory budget for all arrays of the process */

typedef struct ooc_runtime ooc_runtime;

/* `memory`: bytes of the budget; 0: 512 MiB. */
int ooc_runtime_create(uint64_t memory, ooc_runtime** rt);
/* All its arrays have been closed.  NULL: nothing. */
void ooc_runtime_destroy(ooc_runtime* rt);

/* --- Stores */

typedef struct ooc_store ooc_store;

/* "local:FOLDER[,FOLDER...]", made where the folders are missing or empty, or "ooc://HOST:PORT". */
int ooc_store_open(const char* url, ooc_store** s);
/* Arrays of it stay open.  NULL: nothing. */
void ooc_store_close(ooc_store* s);
/* Removes the file of an array, or an empty folder. */
int ooc_store_remove(ooc_store* s, const char* path);

/* --- Arrays */

typedef struct ooc_array ooc_array;

/* The ranks of an MPI program that share arrays: see oocarray_mpi.h, which makes them. */
typedef struct ooc_group ooc_group;
/* Its arrays may stay open.  NULL: nothing. */
void ooc_group_destroy(ooc_group* g);

/* Zeros are the usual; begin with {0}. */
typedef struct ooc_array_options {
  const size_t* tile;        /* as many extents as the array has: the file is in such tiles; NULL: row-major */
  const size_t* max_extents; /* up to which it may be resized, only the first where it is row-major; NULL: not at all */
  const void* fill;          /* one element: what has not been written; NULL: zeros */
  uint64_t block;            /* bytes of a block; 0: chosen */
  int sparse;                /* 1: no space is reserved */
  int commits;               /* 1: it keeps its last commit, see ooc_commit() */
  int replace;               /* 1: ooc_array_create() replaces what is there */
  ooc_group* group; /* the ranks that share it: then creating and closing are collective; NULL: this process alone */
} ooc_array_options;

enum ooc_mode { OOC_READ_ONLY = 0, OOC_READ_WRITE = 1 };

/* `type`: "f8", "f4", "c16", "i4", "u1", ... as in element_type.hpp; `rank`: 1 to 8. */
int ooc_array_create(ooc_runtime* rt, ooc_store* s, const char* path, const char* type, size_t rank,
                     const size_t* extents, const ooc_array_options* options, ooc_array** a);
/* `mode`: an ooc_mode; `group`: as in the options. */
int ooc_array_open(ooc_runtime* rt, ooc_store* s, const char* path, int mode, ooc_group* group, ooc_array** a);
/* Writes back what has been modified, and frees `a`, also where it fails: then what could not be written is lost, and
 * the text says which.  Only with OOC_BUSY, as there are pins of it, on any rank, it stays open: release them, and
 * close it again.  NULL: nothing. */
int ooc_array_close(ooc_array* a);

/* The first element; the others follow it in row-major order.  Valid until the array is closed, resized or rolled back.
 * NULL: see ooc_error_text(). */
void* ooc_array_data(const ooc_array* a);
size_t ooc_array_rank(const ooc_array* a);
/* `extents` has room for ooc_array_rank() numbers. */
void ooc_array_extents(const ooc_array* a, size_t* extents);
/* Of an element: the name of its type, and its bytes. */
const char* ooc_array_type(const ooc_array* a);
size_t ooc_array_element_size(const ooc_array* a);
/* OOC_INVALID_REQUEST unless the array is there and has so many dimensions: for languages whose lists know their
 * length. */
int ooc_array_check_numbers(const ooc_array* a, size_t numbers);
/* As many extents as the array has. */
int ooc_array_resize(ooc_array* a, const size_t* extents);

enum ooc_pattern { OOC_AUTOMATIC = 0, OOC_SEQUENTIAL = 1, OOC_RANDOM = 2 };
/* How the array will be read, an ooc_pattern; only speed depends on it. */
int ooc_array_advise(ooc_array* a, int pattern);
/* Boxes are the elements lower[k] <= i[k] < upper[k].  Starts reading one, and returns at once. */
int ooc_array_prefetch(ooc_array* a, const size_t* lower, const size_t* upper);
/* Promises that the program will write all elements of the box before it reads one: they need not be read from disk. */
int ooc_array_overwrite(ooc_array* a, const size_t* lower, const size_t* upper);

/* Elements that stay in memory: for system calls, libraries and devices that reach memory past the processor. */
typedef struct ooc_pin ooc_pin;
/* `write`: 1 if they are written to. */
int ooc_array_pin(ooc_array* a, const size_t* lower, const size_t* upper, int write, ooc_pin** p);
/* NULL: nothing. */
void ooc_pin_release(ooc_pin* p);

/* Copies the elements with these numbers, counted in row-major order, to and from memory, without loading their blocks.
 */
int ooc_array_gather(const ooc_array* a, size_t count, const size_t* numbers, void* to);
int ooc_array_scatter(ooc_array* a, size_t count, const size_t* numbers, const void* from);

/* Every I/O node has what was modified; `durable` 1: on stable storage, which survives a loss of power. */
int ooc_array_writeback(ooc_array* a, int durable);
/* Forgets what is in memory, so that what others have written is read.  Fails with OOC_DIRTY where something was
 * modified and not written back, unless `discard` is 1. */
int ooc_array_invalidate(ooc_array* a, int discard);

/* --- Arrays that ranks share; one without a group is that of a single rank */

/* Collective: writes back, and lets every rank see what the others have written. */
int ooc_array_sync(ooc_array* a, int durable);
/* The same for the rows next to those of this rank, `rows` on each side. */
int ooc_array_sync_halo(ooc_array* a, size_t rows);
/* The rows of the first index that lie on this rank: *begin <= i < *end.  Not collective. */
int ooc_array_local_rows(const ooc_array* a, size_t* begin, size_t* end);

/* --- Attributes: texts that are kept with an array */

int ooc_array_set_attribute(ooc_array* a, const char* key, const char* value);
/* Copies the value and a zero byte to `value`, if they fit in `room` bytes, and gives the bytes of both in `needed`;
 * ERANGE where they do not fit, ENOENT where there is no such attribute. */
int ooc_array_attribute(const ooc_array* a, const char* key, char* value, size_t room, size_t* needed);

/* --- Commits (commit.hpp, docs/howto/checkpoints.md) */

/* Makes the present state of these arrays their next commit, all or none, durably.  `keys` and `values`: texts that are
 * kept with it, `attributes` of them, which may be 0. */
int ooc_commit(size_t arrays, ooc_array* const* a, size_t attributes, const char* const* keys,
               const char* const* values);
/* The number of the last one, 0 if there was none; -1 for an array that was made without commits. */
int64_t ooc_array_last_commit(const ooc_array* a);
/* A text that was given with it: as ooc_array_attribute(). */
int ooc_array_commit_attribute(const ooc_array* a, const char* key, char* value, size_t room, size_t* needed);
/* Back to the last commit. */
int ooc_array_roll_back(ooc_array* a);

#ifdef __cplusplus
}
#endif

#endif
