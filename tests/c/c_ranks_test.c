/* Ranks of a C program that share an array: each writes its rows, and sees those of its neighbours after a sync. */
#include <stdio.h>
#include <stdlib.h>

#include "oocarray/oocarray_mpi.h"

static void must(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s: %s\n", what, ooc_error_text());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(x) must(x, #x)

enum { rows = 45, columns = 70 };

int main(int argc, char** argv) {
  int rank = 0, size = 0, faults = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ooc_runtime* rt = NULL;
  ooc_store* s = NULL;
  ooc_group* g = NULL;
  ooc_array* a = NULL;
  const size_t extents[2] = {rows, columns};
  MUST(ooc_runtime_create(4 << 20, &rt));
  MUST(ooc_store_open("local:store", &s));
  MUST(ooc_group_create_mpi(MPI_COMM_WORLD, &g));
  ooc_array_options o = {0};
  o.group = g;
  o.commits = 1;
  MUST(ooc_array_create(rt, s, "a", "i4", 2, extents, &o, &a));
  int32_t(*u)[columns] = ooc_array_data(a);
  size_t begin = 0, end = 0;
  MUST(ooc_array_local_rows(a, &begin, &end));
  for (size_t i = begin; i < end; ++i)
    for (size_t j = 0; j < columns; ++j) u[i][j] = (int32_t)(1000 * i + j);
  MUST(ooc_array_sync_halo(a, 1));
  if (begin > 0 && begin < end && u[begin - 1][5] != (int32_t)(1000 * (begin - 1) + 5)) ++faults;
  MUST(ooc_array_sync(a, 0));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) faults += u[i][j] != (int32_t)(1000 * i + j);
  MUST(ooc_commit(1, &a, 0, NULL, NULL));
  if (ooc_array_last_commit(a) != 1) ++faults;
  if (ooc_group_create_mpi(MPI_COMM_WORLD, NULL) != OOC_INVALID_REQUEST) ++faults;
  MUST(ooc_array_close(a));
  MUST(ooc_array_open(rt, s, "a", OOC_READ_ONLY, g, &a));
  if (((int32_t*)ooc_array_data(a))[rows * columns - 1] != 1000 * (rows - 1) + columns - 1) ++faults;
  MUST(ooc_array_close(a));
  ooc_group_destroy(g);
  ooc_store_close(s);
  ooc_runtime_destroy(rt);
  if (faults) fprintf(stderr, "rank %d of %d: %d faults\n", rank, size, faults);
  MPI_Finalize();
  return faults != 0;
}
