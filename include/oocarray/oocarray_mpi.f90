! Groups of MPI ranks for Fortran: compile this file after oocarray.f90, and link with liboocarray_mpi.
!
!     type(ooc_group) :: g
!     call ooc_group_create(g, MPI_COMM_WORLD)          ! of the module mpi; of mpi_f08: MPI_COMM_WORLD%mpi_val
!     call ooc_array_create(a, rt, s, "a", "f8", [n, m], group=g)   ! collective
!     call ooc_array_local_columns(a, first, last)      ! which of the last index are this rank's
!     ... each rank writes its columns ...
!     call ooc_array_sync(a)                            ! collective: others see them
module oocarray_mpi
  use, intrinsic :: iso_c_binding
  use oocarray
  implicit none
  private
  public :: ooc_group_create

  interface
    function c_group_create(comm, g) bind(c, name="ooc_group_create_mpi_f") result(error)
      import
      integer(c_int), value :: comm
      type(c_ptr) :: g
      integer(c_int) :: error
    end function
  end interface

contains

  ! Collective over the communicator.
  subroutine ooc_group_create(g, comm, stat, errmsg)
    type(ooc_group), intent(out) :: g
    integer, intent(in) :: comm
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_group_create(int(comm, c_int), g%handle), stat, errmsg)
  end subroutine

end module oocarray_mpi
