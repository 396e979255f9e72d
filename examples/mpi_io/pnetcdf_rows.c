/* pnetcdf_rows FILE: ranks write a[i][j] = i N + j together with PnetCDF, each a block of rows, and read it by columns.
 *
 * FILE is any name of MPI_File_open.  With oocarray's components run it in a mount of the store and say ooc:a.nc, as PnetCDF
 * looks for what follows the colon in the current folder.  Ends with status 0 if every element is right. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2048 };

static MPI_Offset begin_of(int rank, int ranks) { return (MPI_Offset)N * rank / ranks; }

static void require(int result) {
  if (result == NC_NOERR) return;
  fprintf(stderr, "pnetcdf_rows: %s\n", ncmpi_strerror(result));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank, ranks, file, dimensions[2], a, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) {
    if (rank == 0) fprintf(stderr, "usage: pnetcdf_rows FILE\n");
    MPI_Finalize();
    return 2;
  }
  const MPI_Offset begin = begin_of(rank, ranks), lines = begin_of(rank + 1, ranks) - begin;
  int* memory = malloc((size_t)(N * lines) * sizeof(int));

  require(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  require(ncmpi_def_dim(file, "i", N, &dimensions[0]));
  require(ncmpi_def_dim(file, "j", N, &dimensions[1]));
  require(ncmpi_def_var(file, "a", NC_INT, 2, dimensions, &a));
  require(ncmpi_enddef(file));
  for (MPI_Offset i = 0; i < lines; ++i)
    for (MPI_Offset j = 0; j < N; ++j) memory[i * N + j] = (int)((begin + i) * N + j);
  require(ncmpi_put_vara_int_all(file, a, (MPI_Offset[]){begin, 0}, (MPI_Offset[]){lines, N}, memory));
  require(ncmpi_close(file));

  require(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
  require(ncmpi_inq_varid(file, "a", &a));
  require(ncmpi_get_vara_int_all(file, a, (MPI_Offset[]){0, begin}, (MPI_Offset[]){N, lines}, memory));
  for (MPI_Offset i = 0; i < N; ++i)
    for (MPI_Offset j = 0; j < lines; ++j) wrong |= memory[i * lines + j] != (int)(i * N + begin + j);
  require(ncmpi_close(file));
  free(memory);

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%d x %d elements on %d ranks: %s\n", N, N, ranks, wrong ? "WRONG" : "right");
  MPI_Finalize();
  return wrong;
}
