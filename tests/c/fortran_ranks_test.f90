! Ranks of a Fortran program that share an array: each writes its columns, and sees the others' after a sync.
program fortran_ranks_test
  use oocarray
  use oocarray_mpi
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_size_t), parameter :: n = 70, m = 45
  type(ooc_runtime) :: rt
  type(ooc_store) :: s
  type(ooc_group) :: g
  type(ooc_array) :: a
  integer(c_int32_t), pointer :: u(:, :) => null()
  integer(c_size_t) :: first, last, i, j
  integer :: faults

  faults = 0
  call MPI_Init()
  call ooc_runtime_create(rt, memory=4194304_c_int64_t)
  call ooc_store_open(s, "local:store")
  call ooc_group_create(g, MPI_COMM_WORLD%mpi_val)
  call ooc_array_create(a, rt, s, "a", "i4", [n, m], group=g)
  call c_f_pointer(ooc_array_data(a), u, ooc_array_shape(a))
  call ooc_array_local_columns(a, first, last)
  do j = first, last
    do i = 1, n
      u(i, j) = int(i + 1000 * j, c_int32_t)
    end do
  end do
  call ooc_array_sync_halo(a, 1_c_size_t)
  call ooc_array_sync(a)
  do j = 1, m
    do i = 1, n
      if (u(i, j) /= i + 1000 * j) faults = faults + 1
    end do
  end do
  call ooc_array_close(a)
  call ooc_array_open(a, rt, s, "a", ooc_read_only, group=g)
  call c_f_pointer(ooc_array_data(a), u, ooc_array_shape(a))
  if (u(n, m) /= n + 1000 * m) faults = faults + 1
  call ooc_array_close(a)
  call ooc_group_destroy(g)
  call ooc_store_close(s)
  call ooc_runtime_destroy(rt)
  call MPI_Finalize()
  if (faults /= 0) error stop 1
end program
