/* An MPI-IO program that knows nothing of oocarray: mpi_io_program PREFIX [CASE...]
 *
 * Writes the files PREFIX<case> and reads them again, and prints what MPI says of them.  The same lines and the same files
 * must come of it on a plain folder and on a store, whatever the number of ranks that both ran on. */
#include <dirent.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, ranks;
static char path[512];
static const char* current;

#define FAIL(...)                                             \
  do {                                                        \
    fprintf(stderr, "%s, rank %d: line %d: ", current, rank, __LINE__); \
    fprintf(stderr, __VA_ARGS__);                             \
    fprintf(stderr, "\n");                                    \
    MPI_Abort(MPI_COMM_WORLD, 1);                             \
  } while (0)

#define CHECK(condition) \
  do {                   \
    if (!(condition)) FAIL("%s", #condition); \
  } while (0)

static const char* class_of(int code) {
  static char text[32];
  int c = MPI_SUCCESS;
  MPI_Error_class(code, &c);
  switch (c) {
    case MPI_SUCCESS: return "success";
    case MPI_ERR_NO_SUCH_FILE: return "no such file";
    case MPI_ERR_FILE_EXISTS: return "file exists";
    case MPI_ERR_ACCESS: return "access";
    case MPI_ERR_READ_ONLY: return "read only";
    case MPI_ERR_AMODE: return "amode";
    case MPI_ERR_BAD_FILE: return "bad file";
    case MPI_ERR_FILE_IN_USE: return "file in use";
    case MPI_ERR_NO_SPACE: return "no space";
    case MPI_ERR_IO: return "io";
  }
  snprintf(text, sizeof text, "class %d", c);
  return text;
}

/* Rank 0 speaks. */
static void say(const char* what, long long value) {
  if (rank == 0) printf("%s: %s %lld\n", current, what, value);
}
static void say_class(const char* what, int code) {
  if (rank == 0) printf("%s: %s: %s\n", current, what, class_of(code));
}

#define DO(call)                                       \
  do {                                                 \
    const int done_ = (call);                          \
    if (done_ != MPI_SUCCESS) FAIL("%s: %s", #call, class_of(done_)); \
  } while (0)

static MPI_File open_file(int amode, MPI_Info info) {
  MPI_File f;
  DO(MPI_File_open(MPI_COMM_WORLD, path, amode, info, &f));
  return f;
}

static const int new_file = MPI_MODE_CREATE | MPI_MODE_RDWR;

static int value_at(long i) { return (int)(i * 2654435761L >> 5); }

static long long size_of(MPI_File f) {
  MPI_Offset n = -1;
  DO(MPI_File_get_size(f, &n));
  return n;
}

static int count_of(MPI_Status* s, MPI_Datatype t) {
  int n = -1;
  MPI_Get_count(s, t, &n);
  return n;
}

static void meet(MPI_File f) {
  DO(MPI_File_sync(f));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_sync(f));
}

/* Every int of the file is value_at() of its place. */
static void check_whole(MPI_File f, long ints) {
  int* all = malloc(sizeof(int) * (size_t)ints);
  MPI_Status s;
  long i;
  DO(MPI_File_read_at(f, 0, all, (int)ints, MPI_INT, &s));
  CHECK(count_of(&s, MPI_INT) == ints);
  for (i = 0; i < ints; ++i)
    if (all[i] != value_at(i)) FAIL("int %ld is %d, not %d", i, all[i], value_at(i));
  free(all);
}

enum { block = 5000 };

static void explicit_offsets(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[block], in[block], i;
  MPI_Status s;
  for (i = 0; i < block; ++i) out[i] = value_at((long)rank * block + i);
  DO(MPI_File_write_at(f, (MPI_Offset)rank * (MPI_Offset)sizeof out, out, block, MPI_INT, &s));
  CHECK(count_of(&s, MPI_INT) == block);
  meet(f);
  check_whole(f, (long)ranks * block);
  CHECK(size_of(f) == (long long)ranks * (long long)sizeof out);
  DO(MPI_File_read_at(f, (MPI_Offset)ranks * (MPI_Offset)sizeof out - 40, in, block, MPI_INT, &s));
  say("ints read at the end", count_of(&s, MPI_INT));
  DO(MPI_File_read_at(f, (MPI_Offset)ranks * (MPI_Offset)sizeof out + 4000, in, block, MPI_INT, &s));
  say("ints read past the end", count_of(&s, MPI_INT));
  DO(MPI_File_close(&f));
}

static void individual_pointers(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[100], i, round;
  MPI_Offset at;
  MPI_Status s;
  for (round = 0; round < 3; ++round) {
    const long first = (long)(round * ranks + rank) * 100;
    for (i = 0; i < 100; ++i) out[i] = value_at(first + i);
    DO(MPI_File_seek(f, first * 4, MPI_SEEK_SET));
    DO(MPI_File_write(f, out, 60, MPI_INT, &s));
    DO(MPI_File_get_position(f, &at));
    CHECK(at == first * 4 + 240);
    DO(MPI_File_write(f, out + 60, 40, MPI_INT, &s));
  }
  meet(f);
  check_whole(f, 300L * ranks);
  DO(MPI_File_seek(f, -40, MPI_SEEK_END));
  DO(MPI_File_read(f, out, 100, MPI_INT, &s));
  say("ints read before the end", count_of(&s, MPI_INT));
  DO(MPI_File_close(&f));
}

static void strided_views(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  MPI_Datatype view;
  enum { groups = 700, length = 7 };
  int out[groups * length], g, i;
  MPI_Status s;
  MPI_Type_vector(groups, length, length * ranks, MPI_INT, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, (MPI_Offset)rank * length * 4, MPI_INT, view, "native", MPI_INFO_NULL));
  for (g = 0; g < groups; ++g)
    for (i = 0; i < length; ++i) out[g * length + i] = value_at(((long)g * ranks + rank) * length + i);
  DO(MPI_File_write(f, out, 1000, MPI_INT, &s));
  DO(MPI_File_write(f, out + 1000, groups * length - 1000, MPI_INT, &s));
  CHECK(count_of(&s, MPI_INT) == groups * length - 1000);
  meet(f);
  memset(out, 0, sizeof out);
  DO(MPI_File_read_at(f, 3, out, 2000, MPI_INT, &s));
  for (i = 0; i < 2000; ++i)
    CHECK(out[i] == value_at(((long)((i + 3) / length) * ranks + rank) * length + (i + 3) % length));
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, (long)groups * length * ranks);
  MPI_Type_free(&view);
  DO(MPI_File_close(&f));
}

/* A matrix whose columns are dealt out to the ranks; in memory each part has a margin. */
static void subarrays(int collective) {
  enum { rows = 60, columns = 50, margin = 2 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int sizes[2] = {rows, columns * ranks}, parts[2] = {rows, columns}, starts[2] = {0, columns * rank};
  int memory_sizes[2] = {rows + 2 * margin, columns + 2 * margin}, memory_starts[2] = {margin, margin};
  int out[rows + 2 * margin][columns + 2 * margin], r, c;
  MPI_Datatype view, memory;
  MPI_Status s;
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &view);
  MPI_Type_create_subarray(2, memory_sizes, parts, memory_starts, MPI_ORDER_C, MPI_INT, &memory);
  MPI_Type_commit(&view);
  MPI_Type_commit(&memory);
  for (r = 0; r < rows + 2 * margin; ++r)
    for (c = 0; c < columns + 2 * margin; ++c)
      out[r][c] = value_at((long)(r - margin) * columns * ranks + columns * rank + c - margin);
  DO(MPI_File_set_view(f, 0, MPI_INT, view, "native", MPI_INFO_NULL));
  DO(collective ? MPI_File_write_all(f, out, 1, memory, &s) : MPI_File_write(f, out, 1, memory, &s));
  say("ints written", count_of(&s, MPI_INT));
  meet(f);
  memset(out, 0, sizeof out);
  DO(collective ? MPI_File_read_at_all(f, 0, out, 1, memory, &s) : MPI_File_read_at(f, 0, out, 1, memory, &s));
  for (r = 0; r < rows + 2 * margin; ++r)
    for (c = 0; c < columns + 2 * margin; ++c) {
      const int inside = r >= margin && r < rows + margin && c >= margin && c < columns + margin;
      CHECK(out[r][c] == (inside ? value_at((long)(r - margin) * columns * ranks + columns * rank + c - margin) : 0));
    }
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, (long)rows * columns * ranks);
  MPI_Type_free(&view);
  MPI_Type_free(&memory);
  DO(MPI_File_close(&f));
}
static void subarrays_alone(void) { subarrays(0); }
static void subarrays_together(void) { subarrays(1); }

static void distributed_arrays(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int sizes[2] = {40, 36}, kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  int arguments[2] = {3, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {ranks, 1}, n, r, c, i = 0;
  int* out;
  MPI_Datatype view;
  MPI_Status s;
  MPI_Type_create_darray(ranks, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &view);
  MPI_Type_commit(&view);
  MPI_Type_size(view, &n);
  n /= 4;
  out = malloc(sizeof(int) * (size_t)n);
  for (r = 0; r < sizes[0]; ++r)
    if (r / 3 % ranks == rank)
      for (c = 0; c < sizes[1]; ++c) out[i++] = value_at((long)r * sizes[1] + c);
  CHECK(i == n);
  DO(MPI_File_set_view(f, 0, MPI_INT, view, "native", MPI_INFO_NULL));
  DO(MPI_File_write_all(f, out, n, MPI_INT, &s));
  CHECK(count_of(&s, MPI_INT) == n);
  meet(f);
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, 40L * 36);
  MPI_Type_free(&view);
  free(out);
  DO(MPI_File_close(&f));
}

static void nonblocking(void) {
  enum { pieces = 16, length = 3000 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int(*out)[length] = malloc(sizeof(int) * pieces * length), p, i;
  MPI_Request requests[pieces];
  MPI_Status statuses[pieces];
  for (p = 0; p < pieces; ++p) {
    const long first = ((long)p * ranks + rank) * length;
    for (i = 0; i < length; ++i) out[p][i] = value_at(first + i);
    DO(MPI_File_iwrite_at(f, first * 4, out[p], length, MPI_INT, &requests[p]));
  }
  DO(MPI_Waitall(pieces, requests, statuses));
  for (p = 0; p < pieces; ++p) CHECK(count_of(&statuses[p], MPI_INT) == length);
  meet(f);
  check_whole(f, (long)pieces * length * ranks);
  memset(out, 0, sizeof(int) * pieces * length);
  for (p = 0; p < pieces; ++p)
    DO(MPI_File_iread_at(f, ((long)p * ranks + rank) * length * 4, out[p], length, MPI_INT, &requests[p]));
  for (p = 0; p < pieces; ++p) {
    int index = -1;
    DO(MPI_Waitany(pieces, requests, &index, &statuses[0]));
    CHECK(count_of(&statuses[0], MPI_INT) == length);
    for (i = 0; i < length; ++i) CHECK(out[index][i] == value_at(((long)index * ranks + rank) * length + i));
  }
  DO(MPI_File_seek(f, (long)rank * length * 4, MPI_SEEK_SET));
  DO(MPI_File_iread_all(f, out[0], length, MPI_INT, &requests[0]));
  DO(MPI_Wait(&requests[0], &statuses[0]));
  for (i = 0; i < length; ++i) CHECK(out[0][i] == value_at((long)rank * length + i));
  free(out);
  DO(MPI_File_close(&f));
}

/* On a plain file OMPIO 4.1.4 waits for ever. */
static void nonblocking_at_the_end(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int numbers[1000] = {0};
  MPI_Request r;
  MPI_Status s;
  if (rank == 0) DO(MPI_File_write_at(f, 0, numbers, 1000, MPI_INT, &s));
  meet(f);
  DO(MPI_File_iread_at(f, 3600, numbers, 1000, MPI_INT, &r));
  DO(MPI_Wait(&r, &s));
  CHECK(count_of(&s, MPI_INT) == 100);
  DO(MPI_File_close(&f));
}

/* Its threads, as many as there is room for. */
static int threads_of_process(long* ids, int most) {
  DIR* const all = opendir("/proc/self/task");
  const struct dirent* one;
  int n = 0;
  CHECK(all != NULL);
  while (n < most && (one = readdir(all)) != NULL)
    if (one->d_name[0] != '.') ids[n++] = atol(one->d_name);
  closedir(all);
  return n;
}

/* What serves the file is there from the first time to the last: a store does not begin anew with each file. */
static void opened_often(void) {
  enum { most = 200 };
  long first[most], last[most];
  int first_threads = 0, last_threads = 0, gone = 0, time, i, j;
  for (time = 0; time < 10; ++time) {
    MPI_File f = open_file(new_file, MPI_INFO_NULL);
    MPI_Status s;
    if (rank == 0) DO(MPI_File_write_at(f, 4 * time, &time, 1, MPI_INT, &s));
    if (time == 0) first_threads = threads_of_process(first, most);
    last_threads = threads_of_process(last, most);
    DO(MPI_File_close(&f));
  }
  for (i = 0; i < first_threads; ++i) {
    for (j = 0; j < last_threads && last[j] != first[i]; ++j) {
    }
    gone += j == last_threads;
  }
  CHECK(gone < 2); /* one may have been there for a moment; a store has more */
}

/* Each rank also writes what its neighbour writes. */
static void shared_bytes(void) {
  enum { groups = 80, length = 10, more = 13 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[groups * more], g, i;
  MPI_Datatype row, view;
  MPI_Status s;
  MPI_Type_contiguous(ranks > 1 ? more : length, MPI_INT, &row);
  MPI_Type_create_hvector(groups, 1, (MPI_Aint)length * ranks * 4, row, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, (MPI_Offset)rank * length * 4, MPI_INT, view, "native", MPI_INFO_NULL));
  for (g = 0, i = 0; g < groups; ++g) {
    const int n = ranks > 1 ? more : length;
    int k;
    for (k = 0; k < n; ++k) out[i++] = value_at(((long)g * ranks + rank) * length + k);
  }
  DO(MPI_File_write_all(f, out, i, MPI_INT, &s));
  meet(f);
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, (long)groups * length * ranks);
  MPI_Type_free(&row);
  MPI_Type_free(&view);
  DO(MPI_File_close(&f));
}

/* Bytes in the other order, packed by OMPIO. */
static void foreign_representation(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[300], i;
  MPI_Request r;
  MPI_Status s;
  for (i = 0; i < 300; ++i) out[i] = value_at(rank * 300L + i);
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  DO(MPI_File_write_at(f, rank * 300L, out, 100, MPI_INT, &s));
  DO(MPI_File_iwrite_at(f, rank * 300L + 100, out + 100, 100, MPI_INT, &r));
  DO(MPI_Wait(&r, &s));
  DO(MPI_File_write_at_all(f, rank * 300L + 200, out + 200, 100, MPI_INT, &s));
  meet(f);
  memset(out, 0, sizeof out);
  DO(MPI_File_read_at_all(f, rank * 300L, out, 300, MPI_INT, &s));
  for (i = 0; i < 300; ++i) CHECK(out[i] == value_at(rank * 300L + i));
  DO(MPI_File_close(&f));
}

static void sizes(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char bytes[9000], zero[9000] = {0};
  MPI_Status s;
  memset(bytes, 'x', sizeof bytes);
  if (rank == 0) DO(MPI_File_write_at(f, 0, bytes, 9000, MPI_BYTE, &s));
  meet(f);
  say("size", size_of(f));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_set_size(f, 5001));
  CHECK(size_of(f) == 5001);
  DO(MPI_File_read_at(f, 5000, bytes, 100, MPI_BYTE, &s));
  say("bytes read", count_of(&s, MPI_BYTE));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_set_size(f, 20000));
  CHECK(size_of(f) == 20000);
  DO(MPI_File_read_at(f, 5001, bytes, 9000, MPI_BYTE, &s));
  CHECK(count_of(&s, MPI_BYTE) == 9000);
  CHECK(memcmp(bytes, zero, 9000) == 0);
  DO(MPI_File_close(&f));
}

static void preallocation(void) {
  if (rank == 0) {
    MPI_File f;
    char bytes[300];
    MPI_Status s;
    memset(bytes, 1, sizeof bytes);
    DO(MPI_File_open(MPI_COMM_SELF, path, new_file, MPI_INFO_NULL, &f));
    DO(MPI_File_preallocate(f, 100000));
    say("size", size_of(f));
    DO(MPI_File_read_at(f, 99800, bytes, 300, MPI_BYTE, &s));
    say("bytes read", count_of(&s, MPI_BYTE));
    CHECK(bytes[0] == 0 && bytes[199] == 0 && bytes[200] == 1);
    DO(MPI_File_preallocate(f, 1000));
    say("size", size_of(f));
    DO(MPI_File_close(&f));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void appending(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char c = 'a';
  MPI_Offset at = -1;
  MPI_Status s;
  if (rank == 0) DO(MPI_File_write_at(f, 99, &c, 1, MPI_BYTE, &s));
  DO(MPI_File_close(&f));
  f = open_file(MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL);
  DO(MPI_File_get_position(f, &at));
  say("position", at);
  DO(MPI_File_seek(f, rank, MPI_SEEK_CUR));
  c = (char)('A' + rank);
  DO(MPI_File_write(f, &c, 1, MPI_BYTE, &s));
  DO(MPI_File_close(&f));
  f = open_file(MPI_MODE_RDONLY, MPI_INFO_NULL);
  CHECK(size_of(f) == 100 + ranks);
  DO(MPI_File_close(&f));
}

/* Megabytes in small pieces, one after the other. */
static void streams(void) {
  enum { piece = 4096, pieces = 120 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[piece], i, p;
  MPI_Status s;
  for (p = 0; p < pieces; ++p) {
    const long first = ((long)p * ranks + rank) * piece;
    for (i = 0; i < piece; ++i) out[i] = value_at(first + i);
    DO(MPI_File_write_at(f, first * 4, out, piece, MPI_INT, &s));
    CHECK(count_of(&s, MPI_INT) == piece);
  }
  meet(f);
  check_whole(f, (long)pieces * piece * ranks);
  DO(MPI_File_close(&f));
}

/* Collective writes of more than one round of OMPIO's aggregators. */
static void long_collectives(void) {
  enum { rounds = 300, length = 500 };
  MPI_File f;
  MPI_Info info;
  MPI_Datatype view;
  MPI_Status s;
  int* out = malloc(sizeof(int) * rounds * length);
  long i;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "100000");
  f = open_file(new_file, info);
  MPI_Info_free(&info);
  MPI_Type_vector(rounds, length, length * ranks, MPI_INT, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, (MPI_Offset)rank * length * 4, MPI_INT, view, "native", MPI_INFO_NULL));
  for (i = 0; i < rounds * length; ++i) out[i] = value_at((i / length * ranks + rank) * length + i % length);
  DO(MPI_File_write_all(f, out, rounds * length, MPI_INT, &s));
  meet(f);
  memset(out, 0, sizeof(int) * rounds * length);
  DO(MPI_File_read_at_all(f, 0, out, rounds * length, MPI_INT, &s));
  for (i = 0; i < rounds * length; ++i) CHECK(out[i] == value_at((i / length * ranks + rank) * length + i % length));
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, (long)rounds * length * ranks);
  MPI_Type_free(&view);
  free(out);
  DO(MPI_File_close(&f));
}

static void shared_pointers(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int out[100], i;
  MPI_Offset at = -1;
  MPI_Status s;
  for (i = 0; i < 100; ++i) out[i] = value_at(rank * 100L + i);
  DO(MPI_File_write_ordered(f, out, 100, MPI_INT, &s));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_get_position_shared(f, &at));
  CHECK(at == ranks * 400L);
  meet(f);
  check_whole(f, ranks * 100L);
  for (i = 0; i < 100; ++i) out[i] = 4711;
  DO(MPI_File_write_shared(f, out, 100, MPI_INT, &s));
  meet(f);
  CHECK(size_of(f) == ranks * 800L);
  DO(MPI_File_close(&f));
}

/* Ranks take pieces in no particular order, each piece once. */
static void shared_turns(void) {
  enum { turns = 12, length = 25 };
  const int pieces = turns * ranks;
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int numbers[length], *times = calloc((size_t)pieces, sizeof(int)), i, t;
  MPI_Offset at = -1;
  MPI_Request r;
  MPI_Status s;
  for (t = 0; t < turns; ++t) {
    for (i = 0; i < length; ++i) numbers[i] = (rank * turns + t) * length + i;
    if (t % 3 != 0) {
      DO(MPI_File_write_shared(f, numbers, length, MPI_INT, &s));
    } else {
      DO(MPI_File_iwrite_shared(f, numbers, length, MPI_INT, &r));
      DO(MPI_Wait(&r, &s));
    }
    CHECK(count_of(&s, MPI_INT) == length);
  }
  meet(f);
  CHECK(size_of(f) == (long long)pieces * length * 4);
  DO(MPI_File_get_position_shared(f, &at));
  CHECK(at == (long long)pieces * length * 4);
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
  for (t = 0; t < turns; ++t) {
    if (t % 3 != 0) {
      DO(MPI_File_read_shared(f, numbers, length, MPI_INT, &s));
    } else {
      DO(MPI_File_iread_shared(f, numbers, length, MPI_INT, &r));
      DO(MPI_Wait(&r, &s));
    }
    CHECK(count_of(&s, MPI_INT) == length && numbers[0] % length == 0 && numbers[0] / length < pieces);
    for (i = 0; i < length; ++i) CHECK(numbers[i] == numbers[0] + i);
    ++times[numbers[0] / length];
  }
  MPI_Allreduce(MPI_IN_PLACE, times, pieces, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (i = 0; i < pieces; ++i)
    if (times[i] != 1) FAIL("piece %d was read %d times", i, times[i]);
  DO(MPI_File_read_shared(f, numbers, length, MPI_INT, &s));
  CHECK(count_of(&s, MPI_INT) == 0);
  free(times);
  /* The same file comes of it each time. */
  MPI_Barrier(MPI_COMM_WORLD);
  for (t = 0; t < turns; ++t) {
    for (i = 0; i < length; ++i) numbers[i] = (rank * turns + t) * length + i;
    DO(MPI_File_write_at(f, (MPI_Offset)numbers[0] * 4, numbers, length, MPI_INT, &s));
  }
  DO(MPI_File_close(&f));
}

/* Rank after rank, in the elements of a view. */
static void shared_order(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  const int before = rank * (rank + 1) / 2, all = ranks * (ranks + 1) / 2; /* rank r has r + 1 numbers */
  int* numbers = malloc(sizeof(int) * (size_t)all);
  int i;
  MPI_Datatype view;
  MPI_Offset at = -1;
  MPI_Status s;
  for (i = 0; i <= rank; ++i) numbers[i] = value_at(before + i);
  DO(MPI_File_set_view(f, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  DO(MPI_File_write_ordered_begin(f, numbers, rank + 1, MPI_INT));
  DO(MPI_File_write_ordered_end(f, numbers, &s));
  CHECK(count_of(&s, MPI_INT) == rank + 1);
  for (i = 0; i <= rank; ++i) numbers[i] = value_at(all + before + i);
  DO(MPI_File_write_ordered(f, numbers, rank + 1, MPI_INT, &s));
  meet(f);
  CHECK(size_of(f) == 8 + 8LL * all);
  DO(MPI_File_get_position_shared(f, &at));
  CHECK(at == 2 * all);
  MPI_Barrier(MPI_COMM_WORLD);
  DO(MPI_File_seek_shared(f, -all, MPI_SEEK_CUR));
  memset(numbers, 0, sizeof(int) * (size_t)all);
  DO(MPI_File_read_ordered(f, numbers, rank + 1, MPI_INT, &s));
  for (i = 0; i <= rank; ++i) CHECK(numbers[i] == value_at(all + before + i));
  /* Every other number; a new view begins at its beginning. */
  MPI_Type_vector(1, 1, 2, MPI_INT, &view);
  MPI_Type_create_resized(view, 0, 8, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, 12, MPI_INT, view, "native", MPI_INFO_NULL));
  DO(MPI_File_get_position_shared(f, &at));
  CHECK(at == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(numbers, 0, sizeof(int) * (size_t)all);
  DO(MPI_File_read_ordered_begin(f, numbers, 1, MPI_INT));
  DO(MPI_File_read_ordered_end(f, numbers, &s));
  CHECK(numbers[0] == value_at(2L * rank + 1));
  MPI_Type_free(&view);
  DO(MPI_File_close(&f));
  f = open_file(MPI_MODE_RDONLY, MPI_INFO_NULL);
  DO(MPI_File_seek_shared(f, 8, MPI_SEEK_SET));
  DO(MPI_File_read_ordered(f, numbers, rank + 1, MPI_INT, &s));
  for (i = 0; i <= rank; ++i) CHECK(numbers[i] == value_at(before + i));
  DO(MPI_File_close(&f));
  free(numbers);
}

/* Open MPI 4.1 answers MPI_File_set_atomicity on a plain folder, and reads there see half of another rank's write. */
static int reads_are_atomic(void) { return strncmp(path, "ooc:", 4) == 0; }

/* By our own component, on several hosts: a position that cannot be is refused on all ranks, and changes nothing. */
static void shared_refusals(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  MPI_Offset at = -1;
  DO(MPI_File_seek_shared(f, 100, MPI_SEEK_SET));
  CHECK(MPI_File_seek_shared(f, -101, MPI_SEEK_CUR) != MPI_SUCCESS);
  CHECK(MPI_File_seek_shared(f, -1, MPI_SEEK_END) != MPI_SUCCESS);
  DO(MPI_File_get_position_shared(f, &at));
  CHECK(at == 100);
  DO(MPI_File_close(&f));
}

static void atomic_writes(void) {
  enum { bytes = 200000 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char* memory = malloc(bytes);
  int flag = 0, round, i;
  MPI_Status s;
  DO(MPI_File_set_atomicity(f, 1));
  DO(MPI_File_get_atomicity(f, &flag));
  say("atomicity", flag);
  for (round = 0; round < 5; ++round) {
    memset(memory, 'a' + rank, bytes);
    DO(MPI_File_write_at(f, 0, memory, bytes, MPI_BYTE, &s));
    DO(MPI_File_read_at(f, 0, memory, bytes, MPI_BYTE, &s));
    for (i = 0; i < bytes; ++i) CHECK(!reads_are_atomic() || memory[i] == memory[0]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  memset(memory, '.', bytes);
  if (rank == ranks - 1) DO(MPI_File_write_at(f, 0, memory, bytes, MPI_BYTE, &s));
  free(memory);
  DO(MPI_File_close(&f));
}

/* Of a file that is open for reading.  On a plain file OMPIO says no more than that it failed. */
static void refuses_another_size(MPI_File f, int code) {
  CHECK(code != MPI_SUCCESS);
  if (strncmp(path, "ooc:", 4) == 0) CHECK(strcmp(class_of(code), "read only") == 0);
  CHECK(size_of(f) == ranks);
}

static void names(void) {
  MPI_File f;
  MPI_Status s;
  char c = 'x';
  size_t end = strlen(path);
  int e = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
  say_class("opening what is not there", e);
  e = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  say_class("opening what is not there for writing", e);
  strcpy(path + end, "/missing/file");
  e = MPI_File_open(MPI_COMM_WORLD, path, new_file, MPI_INFO_NULL, &f);
  say_class("making a file in a folder that is not there", e);
  path[end] = '\0';
  f = open_file(new_file | MPI_MODE_EXCL, MPI_INFO_NULL);
  DO(MPI_File_write_at(f, rank, &c, 1, MPI_BYTE, &s));
  DO(MPI_File_close(&f));
  e = MPI_File_open(MPI_COMM_WORLD, path, new_file | MPI_MODE_EXCL, MPI_INFO_NULL, &f);
  say_class("making it again", e);
  e = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
  say_class("making it for reading", e);
  f = open_file(MPI_MODE_RDONLY, MPI_INFO_NULL);
  say_class("writing a file that is open for reading", MPI_File_write_at(f, 0, &c, 1, MPI_BYTE, &s));
  DO(MPI_File_read_at(f, 0, &c, 1, MPI_BYTE, &s));
  CHECK(c == 'x');
  refuses_another_size(f, MPI_File_set_size(f, 0));
  refuses_another_size(f, MPI_File_set_size(f, 1000));
  refuses_another_size(f, MPI_File_preallocate(f, 1000));
  DO(MPI_File_close(&f));
  if (rank == 0) {
    say_class("removing it", MPI_File_delete(path, MPI_INFO_NULL));
    say_class("removing it again", MPI_File_delete(path, MPI_INFO_NULL));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  e = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
  say_class("opening it then", e);
}

static void removed_at_close(void) {
  MPI_File f = open_file(new_file | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
  char c = 'x';
  MPI_Status s;
  int e;
  DO(MPI_File_write_at(f, rank, &c, 1, MPI_BYTE, &s));
  e = MPI_File_close(&f);
  say_class("closing", rank == 0 ? MPI_SUCCESS : e); /* OMPIO removes it on every rank: on a plain file one wins */
  MPI_Barrier(MPI_COMM_WORLD);
  e = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
  say_class("opening it then", e);
}

static void hints(void) {
  MPI_Info info;
  MPI_File f;
  char c = 'x';
  MPI_Status s;
  MPI_Info_create(&info);
  MPI_Info_set(info, "striping_factor", "2");
  MPI_Info_set(info, "striping_unit", "8192");
  f = open_file(new_file, info);
  MPI_Info_free(&info);
  DO(MPI_File_write_at(f, 100000 + rank, &c, 1, MPI_BYTE, &s));
  DO(MPI_File_close(&f));
}

static void empty_files(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char c = 1;
  MPI_Status s;
  DO(MPI_File_read_at(f, 0, &c, 1, MPI_BYTE, &s));
  say("bytes read", count_of(&s, MPI_BYTE));
  DO(MPI_File_write_all(f, &c, 0, MPI_BYTE, &s));
  say("bytes written", count_of(&s, MPI_BYTE));
  meet(f);
  say("size", size_of(f));
  DO(MPI_File_close(&f));
}

/* On a disk of 4 MiB, of which 2 are taken.  Of an independent write that fails OMPIO only says that nothing was written:
 * the next sync fails, once.  A collective one fails on all ranks. */
static void full_disk(void) {
  enum { bytes = 3000000 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char* memory = calloc(1, bytes);
  int failed, sum = 0;
  MPI_Request request;
  MPI_Status s;
  DO(MPI_File_write_at(f, rank * 1000, memory, 1000, MPI_BYTE, &s));
  CHECK(count_of(&s, MPI_BYTE) == 1000);
  meet(f);
  MPI_File_write_at(f, (MPI_Offset)rank * bytes, memory, bytes, MPI_BYTE, &s);
  failed = count_of(&s, MPI_BYTE) == 0;
  CHECK(failed || count_of(&s, MPI_BYTE) == bytes);
  MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  say("some failed", sum > 0);
  CHECK(strcmp(class_of(MPI_File_sync(f)), failed ? "no space" : "success") == 0);
  DO(MPI_File_sync(f));
  failed = MPI_File_write_at_all(f, (MPI_Offset)(rank + 1) * bytes, memory, bytes, MPI_BYTE, &s) != MPI_SUCCESS;
  MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  say("all failed together", sum == ranks);
  DO(MPI_File_sync(f));
  DO(MPI_File_iwrite_at(f, (MPI_Offset)(rank + 1) * bytes, memory, bytes, MPI_BYTE, &request));
  say_class("one that nobody waited for", MPI_Wait(&request, &s));
  failed = MPI_File_set_size(f, 40 * bytes) != MPI_SUCCESS;
  MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  say("all failed to resize", sum == ranks);
  MPI_File_close(&f);
  f = open_file(MPI_MODE_RDWR, MPI_INFO_NULL);
  DO(MPI_File_read_at(f, rank * 1000, memory, 1000, MPI_BYTE, &s));
  CHECK(count_of(&s, MPI_BYTE) == 1000);
  DO(MPI_File_close(&f));
  free(memory);
}

static size_t bytes_of_addresses(void) {
  size_t pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  CHECK(f != NULL && fscanf(f, "%zu", &pages) == 1);
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* One rank has no memory for the buffers of a collective transfer: no rank waits for it for ever, and when there is some
 * again they go on. */
static void short_memory(void) {
  enum { run = 500, runs = 12000, all = run * runs };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  struct rlimit limit, less;
  int* out = malloc(sizeof(int) * all);
  MPI_Datatype view;
  MPI_Status s;
  long i;
  int failed, sum = 0, round;
  for (i = 0; i < all; ++i) out[i] = value_at((i / run * ranks + rank) * run + i % run);
  MPI_Type_vector(runs, run, run * ranks, MPI_INT, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, (MPI_Offset)rank * run * 4, MPI_INT, view, "native", MPI_INFO_NULL));
  DO(MPI_File_write_at_all(f, 0, out, 1000, MPI_INT, &s));
  for (round = 0; round < 8; ++round) {
    getrlimit(RLIMIT_AS, &limit);
    less = limit;
    less.rlim_cur = bytes_of_addresses() + ((size_t)(3 + round) << 20);
    if (rank == 1) CHECK(setrlimit(RLIMIT_AS, &less) == 0);
    failed = MPI_File_write_at_all(f, 0, out, all, MPI_INT, &s) != MPI_SUCCESS;
    if (rank == 1) CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks || sum == 0);
    DO(MPI_File_write_at_all(f, 0, out, all, MPI_INT, &s));
  }
  meet(f);
  DO(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  check_whole(f, (long)all * ranks);
  MPI_Type_free(&view);
  free(out);
  DO(MPI_File_close(&f));
}

/* What the program had reserved when it was killed is left behind. */
enum { killed_piece = 400000, killed_pieces = 6 };

static void killed(void) {
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  char* memory = malloc(killed_piece);
  int p;
  MPI_Status s;
  memset(memory, 'k', killed_piece);
  for (p = 0; p < killed_pieces; ++p)
    DO(MPI_File_write_at(f, ((MPI_Offset)p * ranks + rank) * killed_piece, memory, killed_piece, MPI_BYTE, &s));
  meet(f);
  MPI_Barrier(MPI_COMM_WORLD);
  kill(getpid(), SIGKILL);
}

static void opened_after_killed(void) {
  MPI_File f;
  char c = 0;
  MPI_Status s;
  strcpy(path + strlen(path) - strlen(current), "killed");
  f = open_file(MPI_MODE_RDWR, MPI_INFO_NULL);
  say("size", size_of(f));
  DO(MPI_File_read_at(f, size_of(f) - 1, &c, 1, MPI_BYTE, &s));
  CHECK(c == 'k');
  DO(MPI_File_close(&f));
}

/* Writes and reads in all ways, round after round, until there is a file `stop` in the current folder. */
static void keeps_going(void) {
  enum { length = 20000, places = 50 };
  MPI_File f = open_file(new_file, MPI_INFO_NULL);
  int *out = malloc(sizeof(int) * length), *in = malloc(sizeof(int) * length), i, round, stop = 0;
  MPI_Request r;
  MPI_Status s;
  for (round = 0; !stop; ++round) {
    const long mine = ((long)(round % places) * ranks + rank) * length;
    const long other = ((long)(round % places) * ranks + (rank + 1) % ranks) * length;
    for (i = 0; i < length; ++i) out[i] = value_at(mine + i + round);
    if (round % 3 == 0) {
      DO(MPI_File_write_at(f, mine * 4, out, length, MPI_INT, &s));
    } else if (round % 3 == 1) {
      DO(MPI_File_write_at_all(f, mine * 4, out, length, MPI_INT, &s));
    } else {
      DO(MPI_File_iwrite_at(f, mine * 4, out, length, MPI_INT, &r));
      DO(MPI_Wait(&r, &s));
    }
    CHECK(count_of(&s, MPI_INT) == length);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0, sizeof(int) * length);
    if (round % 2 == 0)
      DO(MPI_File_read_at(f, other * 4, in, length, MPI_INT, &s));
    else
      DO(MPI_File_read_at_all(f, other * 4, in, length, MPI_INT, &s));
    CHECK(count_of(&s, MPI_INT) == length);
    for (i = 0; i < length; ++i) CHECK(in[i] == value_at(other + i + round));
    if (round % 10 == 9) DO(MPI_File_sync(f));
    say("round", round);
    fflush(stdout);
    if (rank == 0) stop = access("stop", F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  free(out);
  free(in);
  DO(MPI_File_close(&f));
}

/* One call for many pieces, of which others count the messages. */
enum { message_groups = 2000, message_length = 5, message_stride = 13 };

static void strided_call(int writes) {
  static int numbers[message_groups * message_length];
  MPI_Info info;
  MPI_File f;
  MPI_Datatype view;
  MPI_Status s;
  int i;
  MPI_Info_create(&info);
  MPI_Info_set(info, "striping_unit", "4096");
  strcpy(path + strlen(path) - strlen(current), "strided");
  f = open_file(writes ? new_file : MPI_MODE_RDONLY, info);
  MPI_Info_free(&info);
  if (writes) DO(MPI_File_set_size(f, message_groups * message_stride * 4));
  MPI_Type_vector(message_groups, message_length, message_stride, MPI_INT, &view);
  MPI_Type_commit(&view);
  DO(MPI_File_set_view(f, 0, MPI_INT, view, "native", MPI_INFO_NULL));
  for (i = 0; i < message_groups * message_length; ++i) numbers[i] = writes ? value_at(i) : 0;
  if (writes)
    DO(MPI_File_write(f, numbers, message_groups * message_length, MPI_INT, &s));
  else
    DO(MPI_File_read(f, numbers, message_groups * message_length, MPI_INT, &s));
  for (i = 0; i < message_groups * message_length; ++i) CHECK(numbers[i] == value_at(i));
  MPI_Type_free(&view);
  DO(MPI_File_close(&f));
}
static void strided_write(void) { strided_call(1); }
static void strided_read(void) { strided_call(0); }

/* The last ones run only where they are named. */
enum { named_only = 9 };
static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {{"explicit_offsets", explicit_offsets},
             {"individual_pointers", individual_pointers},
             {"strided_views", strided_views},
             {"subarrays_alone", subarrays_alone},
             {"subarrays_together", subarrays_together},
             {"distributed_arrays", distributed_arrays},
             {"nonblocking", nonblocking},
             {"shared_bytes", shared_bytes},
             {"foreign_representation", foreign_representation},
             {"sizes", sizes},
             {"preallocation", preallocation},
             {"appending", appending},
             {"streams", streams},
             {"long_collectives", long_collectives},
             {"shared_pointers", shared_pointers},
             {"shared_turns", shared_turns},
             {"shared_order", shared_order},
             {"atomic_writes", atomic_writes},
             {"names", names},
             {"removed_at_close", removed_at_close},
             {"hints", hints},
             {"empty_files", empty_files},
             {"opened_often", opened_often},
             {"nonblocking_at_the_end", nonblocking_at_the_end},
             {"shared_refusals", shared_refusals},
             {"full_disk", full_disk},
             {"short_memory", short_memory},
             {"killed", killed},
             {"opened_after_killed", opened_after_killed},
             {"keeps_going", keeps_going},
             {"strided_write", strided_write},
             {"strided_read", strided_read}};

int main(int argc, char** argv) {
  size_t i;
  int a;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int wanted = argc <= 2 && i + named_only < sizeof cases / sizeof *cases;
    for (a = 2; a < argc; ++a) wanted |= strcmp(argv[a], cases[i].name) == 0;
    if (!wanted) continue;
    current = cases[i].name;
    snprintf(path, sizeof path - 20, "%s%s", argv[1], current);
    cases[i].run();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%s: done\n", current), fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
