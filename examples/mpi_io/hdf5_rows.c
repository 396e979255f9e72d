/* hdf5_rows FILE: ranks write a[i][j] = i N + j together with parallel HDF5, each a block of rows, and read it by columns.
 *
 * FILE is any name of MPI_File_open, with oocarray's components ooc:local:/disk1,/disk2/a.h5 or ooc://head:7420/a.h5.
 * Ends with status 0 if every element is right. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2048 };

static hsize_t begin_of(int rank, int ranks) { return (hsize_t)N * (hsize_t)rank / (hsize_t)ranks; }

static hid_t open_file(const char* name, int create) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t file =
      create ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(name, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return file;
}

/* Writes or reads the box at `start` of `extents` elements, as a collective call. */
static void transfer(hid_t set, int write, const hsize_t start[2], const hsize_t extents[2], int* memory) {
  const hid_t in_file = H5Dget_space(set), in_memory = H5Screate_simple(2, extents, NULL);
  const hid_t how = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE);
  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, extents, NULL);
  const herr_t result = write ? H5Dwrite(set, H5T_NATIVE_INT, in_memory, in_file, how, memory)
                              : H5Dread(set, H5T_NATIVE_INT, in_memory, in_file, how, memory);
  H5Pclose(how);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  if (result < 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2) {
    if (rank == 0) fprintf(stderr, "usage: hdf5_rows FILE\n");
    MPI_Finalize();
    return 2;
  }
  const hsize_t begin = begin_of(rank, ranks), lines = begin_of(rank + 1, ranks) - begin, all[2] = {N, N};
  int* memory = malloc(N * lines * sizeof(int));

  hid_t file = open_file(argv[1], 1);
  const hid_t space = H5Screate_simple(2, all, NULL);
  hid_t set = H5Dcreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (hsize_t i = 0; i < lines; ++i)
    for (hsize_t j = 0; j < N; ++j) memory[i * N + j] = (int)((begin + i) * N + j);
  transfer(set, 1, (hsize_t[]){begin, 0}, (hsize_t[]){lines, N}, memory);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);

  file = open_file(argv[1], 0);
  set = H5Dopen2(file, "a", H5P_DEFAULT);
  transfer(set, 0, (hsize_t[]){0, begin}, (hsize_t[]){N, lines}, memory);
  for (hsize_t i = 0; i < N; ++i)
    for (hsize_t j = 0; j < lines; ++j) wrong |= memory[i * lines + j] != (int)(i * N + begin + j);
  H5Dclose(set);
  H5Fclose(file);
  free(memory);

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%d x %d elements on %d ranks: %s\n", N, N, ranks, wrong ? "WRONG" : "right");
  MPI_Finalize();
  return wrong;
}
