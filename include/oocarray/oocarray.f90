! oocarray for Fortran: compile this file with your program, and link with liboocarray.
!
!     use oocarray
!     use, intrinsic :: iso_c_binding
!     type(ooc_runtime) :: rt
!     type(ooc_store) :: s
!     type(ooc_array) :: a
!     real(c_double), pointer :: u(:, :)
!
!     call ooc_runtime_create(rt, memory=512_c_int64_t * 2_c_int64_t**20)
!     call ooc_store_open(s, "local:data")
!     call ooc_array_create(a, rt, s, "a", "f8", [20000_c_size_t, 20000_c_size_t])
!     call c_f_pointer(ooc_array_data(a), u, ooc_array_shape(a))
!     u(:, 1) = 1                       ! elements are in memory when they are touched
!     call ooc_array_close(a)           ! writes back
!
! The calls are those of oocarray.h, which says what they do.  Here shapes, boxes and numbers are Fortran's: the first index
! runs fastest, indices begin at 1, and a box has its upper bounds in it.  In C, C++ and Python the same array has its
! extents in reverse.
!
! All have the optional arguments stat and errmsg, as those of ALLOCATE: where stat is there, it becomes 0, or a code of
! oocarray.h, and errmsg the sentence that says why; where it is not, a failure prints that sentence and ends the program.
module oocarray
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  type, public :: ooc_runtime
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ooc_store
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ooc_array
    private
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: ooc_group
    type(c_ptr) :: handle = c_null_ptr  ! for oocarray_mpi.f90, which makes groups
  end type
  type, public :: ooc_pin
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  integer(c_int), parameter, public :: ooc_read_only = 0, ooc_read_write = 1
  integer(c_int), parameter, public :: ooc_automatic = 0, ooc_sequential = 1, ooc_random = 2
  integer(c_int), parameter :: invalid_request = -1, busy = -8

  public :: ooc_runtime_create, ooc_runtime_destroy, ooc_store_open, ooc_store_close, ooc_store_remove
  public :: ooc_array_create, ooc_array_open, ooc_array_close, ooc_array_data, ooc_array_shape, ooc_array_type
  public :: ooc_array_resize, ooc_array_advise, ooc_array_prefetch, ooc_array_overwrite, ooc_array_pin, ooc_pin_release
  public :: ooc_array_gather, ooc_array_scatter, ooc_array_writeback, ooc_array_invalidate
  public :: ooc_array_set_attribute, ooc_array_attribute, ooc_commit, ooc_array_last_commit
  public :: ooc_array_commit_attribute, ooc_array_roll_back
  public :: ooc_array_sync, ooc_array_sync_halo, ooc_array_local_columns, ooc_group_destroy
  public :: ooc_tell  ! for oocarray_mpi.f90

  type, bind(c) :: c_options
    type(c_ptr) :: tile = c_null_ptr, max_extents = c_null_ptr, fill = c_null_ptr
    integer(c_int64_t) :: block = 0
    integer(c_int) :: sparse = 0, commits = 0, replace = 0
    type(c_ptr) :: group = c_null_ptr
  end type

  interface
    function c_error_text() bind(c, name="ooc_error_text") result(text)
      import
      type(c_ptr) :: text
    end function
    function c_strlen(text) bind(c, name="strlen") result(n)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: n
    end function
    function c_runtime_create(memory, rt) bind(c, name="ooc_runtime_create") result(error)
      import
      integer(c_int64_t), value :: memory
      type(c_ptr) :: rt
      integer(c_int) :: error
    end function
    subroutine c_runtime_destroy(rt) bind(c, name="ooc_runtime_destroy")
      import
      type(c_ptr), value :: rt
    end subroutine
    function c_store_open(url, s) bind(c, name="ooc_store_open") result(error)
      import
      character(kind=c_char) :: url(*)
      type(c_ptr) :: s
      integer(c_int) :: error
    end function
    subroutine c_store_close(s) bind(c, name="ooc_store_close")
      import
      type(c_ptr), value :: s
    end subroutine
    function c_store_remove(s, path) bind(c, name="ooc_store_remove") result(error)
      import
      type(c_ptr), value :: s
      character(kind=c_char) :: path(*)
      integer(c_int) :: error
    end function
    function c_array_create(rt, s, path, type, rank, extents, options, a) bind(c, name="ooc_array_create") result(error)
      import
      type(c_ptr), value :: rt, s
      character(kind=c_char) :: path(*), type(*)
      integer(c_size_t), value :: rank
      integer(c_size_t) :: extents(*)
      type(c_options) :: options
      type(c_ptr) :: a
      integer(c_int) :: error
    end function
    function c_array_open(rt, s, path, mode, group, a) bind(c, name="ooc_array_open") result(error)
      import
      type(c_ptr), value :: rt, s, group
      character(kind=c_char) :: path(*)
      integer(c_int), value :: mode
      type(c_ptr) :: a
      integer(c_int) :: error
    end function
    function c_array_close(a) bind(c, name="ooc_array_close") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int) :: error
    end function
    function c_array_data(a) bind(c, name="ooc_array_data") result(data)
      import
      type(c_ptr), value :: a
      type(c_ptr) :: data
    end function
    function c_array_rank(a) bind(c, name="ooc_array_rank") result(rank)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: rank
    end function
    subroutine c_array_extents(a, extents) bind(c, name="ooc_array_extents")
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: extents(*)
    end subroutine
    function c_array_type(a) bind(c, name="ooc_array_type") result(type)
      import
      type(c_ptr), value :: a
      type(c_ptr) :: type
    end function
    function c_check_numbers(a, numbers) bind(c, name="ooc_array_check_numbers") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t), value :: numbers
      integer(c_int) :: error
    end function
    function c_array_resize(a, extents) bind(c, name="ooc_array_resize") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: extents(*)
      integer(c_int) :: error
    end function
    function c_array_advise(a, pattern) bind(c, name="ooc_array_advise") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int), value :: pattern
      integer(c_int) :: error
    end function
    function c_array_prefetch(a, lower, upper) bind(c, name="ooc_array_prefetch") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: lower(*), upper(*)
      integer(c_int) :: error
    end function
    function c_array_overwrite(a, lower, upper) bind(c, name="ooc_array_overwrite") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: lower(*), upper(*)
      integer(c_int) :: error
    end function
    function c_array_pin(a, lower, upper, write, p) bind(c, name="ooc_array_pin") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: lower(*), upper(*)
      integer(c_int), value :: write
      type(c_ptr) :: p
      integer(c_int) :: error
    end function
    subroutine c_pin_release(p) bind(c, name="ooc_pin_release")
      import
      type(c_ptr), value :: p
    end subroutine
    function c_array_gather(a, count, numbers, to) bind(c, name="ooc_array_gather") result(error)
      import
      type(c_ptr), value :: a, to
      integer(c_size_t), value :: count
      integer(c_size_t) :: numbers(*)
      integer(c_int) :: error
    end function
    function c_array_scatter(a, count, numbers, from) bind(c, name="ooc_array_scatter") result(error)
      import
      type(c_ptr), value :: a, from
      integer(c_size_t), value :: count
      integer(c_size_t) :: numbers(*)
      integer(c_int) :: error
    end function
    function c_array_writeback(a, durable) bind(c, name="ooc_array_writeback") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int), value :: durable
      integer(c_int) :: error
    end function
    function c_array_invalidate(a, discard) bind(c, name="ooc_array_invalidate") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int), value :: discard
      integer(c_int) :: error
    end function
    function c_array_sync(a, durable) bind(c, name="ooc_array_sync") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int), value :: durable
      integer(c_int) :: error
    end function
    function c_array_sync_halo(a, rows) bind(c, name="ooc_array_sync_halo") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t), value :: rows
      integer(c_int) :: error
    end function
    function c_array_local_rows(a, begin, end) bind(c, name="ooc_array_local_rows") result(error)
      import
      type(c_ptr), value :: a
      integer(c_size_t) :: begin, end
      integer(c_int) :: error
    end function
    subroutine c_group_destroy(g) bind(c, name="ooc_group_destroy")
      import
      type(c_ptr), value :: g
    end subroutine
    function c_array_set_attribute(a, key, val) bind(c, name="ooc_array_set_attribute") result(error)
      import
      type(c_ptr), value :: a
      character(kind=c_char) :: key(*), val(*)
      integer(c_int) :: error
    end function
    function c_array_attribute(a, key, val, room, needed) bind(c, name="ooc_array_attribute") result(error)
      import
      type(c_ptr), value :: a
      character(kind=c_char) :: key(*), val(*)
      integer(c_size_t), value :: room
      integer(c_size_t) :: needed
      integer(c_int) :: error
    end function
    function c_commit(arrays, a, attributes, keys, vals) bind(c, name="ooc_commit") result(error)
      import
      integer(c_size_t), value :: arrays, attributes
      type(c_ptr) :: a(*), keys(*), vals(*)
      integer(c_int) :: error
    end function
    function c_array_last_commit(a) bind(c, name="ooc_array_last_commit") result(number)
      import
      type(c_ptr), value :: a
      integer(c_int64_t) :: number
    end function
    function c_commit_attribute(a, key, val, room, needed) bind(c, name="ooc_array_commit_attribute") result(error)
      import
      type(c_ptr), value :: a
      character(kind=c_char) :: key(*), val(*)
      integer(c_size_t), value :: room
      integer(c_size_t) :: needed
      integer(c_int) :: error
    end function
    function c_array_roll_back(a) bind(c, name="ooc_array_roll_back") result(error)
      import
      type(c_ptr), value :: a
      integer(c_int) :: error
    end function
  end interface

contains

  ! --- what is the same in all of them

  function text_at(place) result(text)
    type(c_ptr), intent(in) :: place
    character(:), allocatable :: text
    character(kind=c_char), pointer :: c(:)
    integer :: i
    call c_f_pointer(place, c, [c_strlen(place)])
    allocate (character(size(c)) :: text)
    do i = 1, size(c)
      text(i:i) = c(i)
    end do
  end function

  subroutine ooc_tell(error, stat, errmsg)
    integer(c_int), intent(in) :: error
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stat)) stat = error
    if (error /= 0) call fail(text_at(c_error_text()), present(stat), errmsg)
  end subroutine

  subroutine fail(text, may_go_on, errmsg)
    character(*), intent(in) :: text
    logical, intent(in) :: may_go_on
    character(*), intent(inout), optional :: errmsg
    if (present(errmsg)) errmsg = text
    if (may_go_on) return
    write (error_unit, '(2a)') "oocarray: ", text
    error stop 1
  end subroutine

  ! 0 where the array is open, and each of the lists has a number for each of its dimensions.
  function checked(a, list, other) result(error)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: list(:)
    integer(c_size_t), intent(in), optional :: other(:)
    integer(c_int) :: error
    error = c_check_numbers(a%handle, size(list, kind=c_size_t))
    if (error == 0 .and. present(other)) error = c_check_numbers(a%handle, size(other, kind=c_size_t))
  end function

  ! Ends the program where the array is not open.
  subroutine require_open(a)
    type(ooc_array), intent(in) :: a
    if (.not. c_associated(a%handle)) call ooc_tell(c_check_numbers(a%handle, 0_c_size_t))
  end subroutine

  function reversed(n) result(r)
    integer(c_size_t), intent(in) :: n(:)
    integer(c_size_t) :: r(size(n))
    r = n(size(n):1:-1)
  end function

  pure function c_text(text) result(c)
    character(*), intent(in) :: text
    character(len_trim(text) + 1, kind=c_char) :: c
    c = trim(text)//c_null_char
  end function

  ! A text of any length, by a function that has room for so many bytes.
  subroutine get_text(from, a, key, value, error)
    procedure(c_array_attribute) :: from
    type(ooc_array), intent(in) :: a
    character(*), intent(in) :: key
    character(:), allocatable, intent(out) :: value
    integer(c_int), intent(out) :: error
    character(:, kind=c_char), allocatable :: c
    integer(c_size_t) :: needed
    needed = 1
    allocate (character(1, kind=c_char) :: c)
    error = from(a%handle, c_text(key), c, needed, needed)
    if (error /= 0 .and. needed > 1) then
      deallocate (c)
      allocate (character(needed, kind=c_char) :: c)
      error = from(a%handle, c_text(key), c, needed, needed)
    end if
    if (error == 0) value = c(:needed - 1)
  end subroutine

  ! --- runtime and store

  subroutine ooc_runtime_create(rt, memory, stat, errmsg)
    type(ooc_runtime), intent(out) :: rt
    integer(c_int64_t), intent(in), optional :: memory  ! bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: bytes
    bytes = 0
    if (present(memory)) bytes = memory
    call ooc_tell(c_runtime_create(bytes, rt%handle), stat, errmsg)
  end subroutine

  subroutine ooc_runtime_destroy(rt)
    type(ooc_runtime), intent(inout) :: rt
    call c_runtime_destroy(rt%handle)
    rt%handle = c_null_ptr
  end subroutine

  subroutine ooc_store_open(s, url, stat, errmsg)
    type(ooc_store), intent(out) :: s
    character(*), intent(in) :: url
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_store_open(c_text(url), s%handle), stat, errmsg)
  end subroutine

  subroutine ooc_store_close(s)
    type(ooc_store), intent(inout) :: s
    call c_store_close(s%handle)
    s%handle = c_null_ptr
  end subroutine

  subroutine ooc_store_remove(s, path, stat, errmsg)
    type(ooc_store), intent(in) :: s
    character(*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_store_remove(s%handle, c_text(path)), stat, errmsg)
  end subroutine

  ! --- arrays

  subroutine ooc_array_create(a, rt, s, path, type, shape, max_shape, sparse, commits, replace, group, stat, errmsg)
    type(ooc_array), intent(out) :: a
    type(ooc_runtime), intent(in) :: rt
    type(ooc_store), intent(in) :: s
    character(*), intent(in) :: path, type
    integer(c_size_t), intent(in) :: shape(:)
    integer(c_size_t), intent(in), optional :: max_shape(:)  ! as many as shape has
    logical, intent(in), optional :: sparse, commits, replace
    type(ooc_group), intent(in), optional :: group  ! of ranks that share it; the call is then collective
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    integer(c_size_t), target :: most(size(shape))
    if (present(max_shape)) then
      if (size(max_shape) /= size(shape)) then
        if (present(stat)) stat = invalid_request
        call fail("array '"//trim(path)//"': shape and max_shape have not as many numbers", present(stat), errmsg)
        return
      end if
      most = reversed(max_shape)
      options%max_extents = c_loc(most)
    end if
    if (present(sparse)) options%sparse = merge(1, 0, sparse)
    if (present(commits)) options%commits = merge(1, 0, commits)
    if (present(replace)) options%replace = merge(1, 0, replace)
    if (present(group)) options%group = group%handle
    call ooc_tell(c_array_create(rt%handle, s%handle, c_text(path), c_text(type), size(shape, kind=c_size_t), &
                             reversed(shape), options, a%handle), stat, errmsg)
  end subroutine

  subroutine ooc_array_open(a, rt, s, path, mode, group, stat, errmsg)
    type(ooc_array), intent(out) :: a
    type(ooc_runtime), intent(in) :: rt
    type(ooc_store), intent(in) :: s
    character(*), intent(in) :: path
    integer(c_int), intent(in) :: mode
    type(ooc_group), intent(in), optional :: group
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: ranks
    ranks = c_null_ptr
    if (present(group)) ranks = group%handle
    call ooc_tell(c_array_open(rt%handle, s%handle, c_text(path), mode, ranks, a%handle), stat, errmsg)
  end subroutine

  subroutine ooc_array_close(a, stat, errmsg)
    type(ooc_array), intent(inout) :: a
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    error = c_array_close(a%handle)
    if (error /= busy) a%handle = c_null_ptr  ! with a pin it stays open
    call ooc_tell(error, stat, errmsg)
  end subroutine

  ! The first element, for c_f_pointer() with ooc_array_shape().
  function ooc_array_data(a) result(data)
    type(ooc_array), intent(in) :: a
    type(c_ptr) :: data
    data = c_array_data(a%handle)
    if (.not. c_associated(data)) call ooc_tell(-1_c_int)
  end function

  function ooc_array_shape(a) result(shape)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), allocatable :: shape(:)
    call require_open(a)
    allocate (shape(c_array_rank(a%handle)))
    call c_array_extents(a%handle, shape)
    shape = reversed(shape)
  end function

  function ooc_array_type(a) result(type)
    type(ooc_array), intent(in) :: a
    character(:), allocatable :: type
    call require_open(a)
    type = text_at(c_array_type(a%handle))
  end function

  subroutine ooc_array_resize(a, shape, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: shape(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    error = checked(a, shape)
    if (error == 0) error = c_array_resize(a%handle, reversed(shape))
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_array_advise(a, pattern, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_int), intent(in) :: pattern
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_advise(a%handle, pattern), stat, errmsg)
  end subroutine

  subroutine ooc_array_prefetch(a, lower, upper, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: lower(:), upper(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    error = checked(a, lower, upper)
    if (error == 0) error = c_array_prefetch(a%handle, reversed(lower - 1), reversed(upper))
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_array_overwrite(a, lower, upper, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: lower(:), upper(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    error = checked(a, lower, upper)
    if (error == 0) error = c_array_overwrite(a%handle, reversed(lower - 1), reversed(upper))
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_array_pin(p, a, lower, upper, write, stat, errmsg)
    type(ooc_pin), intent(out) :: p
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: lower(:), upper(:)
    logical, intent(in) :: write
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    error = checked(a, lower, upper)
    if (error == 0) &
      error = c_array_pin(a%handle, reversed(lower - 1), reversed(upper), merge(1_c_int, 0_c_int, write), p%handle)
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_pin_release(p)
    type(ooc_pin), intent(inout) :: p
    call c_pin_release(p%handle)
    p%handle = c_null_ptr
  end subroutine

  ! Elements by their numbers, from 1, in the order in which Fortran has them; `to` and `from`: c_loc() of as many.
  subroutine ooc_array_gather(a, numbers, to, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: numbers(:)
    type(c_ptr), intent(in) :: to
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_gather(a%handle, size(numbers, kind=c_size_t), numbers - 1, to), stat, errmsg)
  end subroutine

  subroutine ooc_array_scatter(a, numbers, from, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: numbers(:)
    type(c_ptr), intent(in) :: from
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_scatter(a%handle, size(numbers, kind=c_size_t), numbers - 1, from), stat, errmsg)
  end subroutine

  subroutine ooc_array_writeback(a, durable, stat, errmsg)
    type(ooc_array), intent(in) :: a
    logical, intent(in), optional :: durable
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: safe
    safe = 0
    if (present(durable)) safe = merge(1_c_int, 0_c_int, durable)
    call ooc_tell(c_array_writeback(a%handle, safe), stat, errmsg)
  end subroutine

  subroutine ooc_array_invalidate(a, discard, stat, errmsg)
    type(ooc_array), intent(in) :: a
    logical, intent(in), optional :: discard
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: aloud
    aloud = 0
    if (present(discard)) aloud = merge(1_c_int, 0_c_int, discard)
    call ooc_tell(c_array_invalidate(a%handle, aloud), stat, errmsg)
  end subroutine

  ! --- arrays that ranks share

  subroutine ooc_array_sync(a, durable, stat, errmsg)
    type(ooc_array), intent(in) :: a
    logical, intent(in), optional :: durable
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: safe
    safe = 0
    if (present(durable)) safe = merge(1_c_int, 0_c_int, durable)
    call ooc_tell(c_array_sync(a%handle, safe), stat, errmsg)
  end subroutine

  ! The columns next to those of this rank: of the last index, so many on each side.
  subroutine ooc_array_sync_halo(a, columns, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(in) :: columns
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_sync_halo(a%handle, columns), stat, errmsg)
  end subroutine

  ! Those of the last index that lie on this rank, both included; first > last: none.
  subroutine ooc_array_local_columns(a, first, last, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer(c_size_t), intent(out) :: first, last
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    first = 0
    last = 0
    error = c_array_local_rows(a%handle, first, last)
    first = first + 1
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_group_destroy(g)
    type(ooc_group), intent(inout) :: g
    call c_group_destroy(g%handle)
    g%handle = c_null_ptr
  end subroutine

  ! --- attributes and commits.  A text ends with its last character that is no blank.

  subroutine ooc_array_set_attribute(a, key, value, stat, errmsg)
    type(ooc_array), intent(in) :: a
    character(*), intent(in) :: key, value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_set_attribute(a%handle, c_text(key), c_text(value)), stat, errmsg)
  end subroutine

  subroutine ooc_array_attribute(a, key, value, stat, errmsg)
    type(ooc_array), intent(in) :: a
    character(*), intent(in) :: key
    character(:), allocatable, intent(out) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    call get_text(c_array_attribute, a, key, value, error)
    call ooc_tell(error, stat, errmsg)
  end subroutine

  ! `key` and `value`: a text that is kept with the commit.
  subroutine ooc_commit(a, key, value, stat, errmsg)
    type(ooc_array), intent(in) :: a(:)
    character(*), intent(in), optional :: key, value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: arrays(size(a)), keys(1), vals(1)
    character(:, kind=c_char), allocatable, target :: c_key, c_value
    integer(c_size_t) :: texts
    integer :: i
    do i = 1, size(a)
      arrays(i) = a(i)%handle
    end do
    texts = 0
    if (present(key) .and. present(value)) then
      texts = 1
      c_key = c_text(key)
      c_value = c_text(value)
      keys(1) = c_loc(c_key)
      vals(1) = c_loc(c_value)
    end if
    call ooc_tell(c_commit(size(a, kind=c_size_t), arrays, texts, keys, vals), stat, errmsg)
  end subroutine

  function ooc_array_last_commit(a) result(number)
    type(ooc_array), intent(in) :: a
    integer(c_int64_t) :: number
    number = c_array_last_commit(a%handle)
  end function

  subroutine ooc_array_commit_attribute(a, key, value, stat, errmsg)
    type(ooc_array), intent(in) :: a
    character(*), intent(in) :: key
    character(:), allocatable, intent(out) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: error
    call get_text(c_commit_attribute, a, key, value, error)
    call ooc_tell(error, stat, errmsg)
  end subroutine

  subroutine ooc_array_roll_back(a, stat, errmsg)
    type(ooc_array), intent(in) :: a
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call ooc_tell(c_array_roll_back(a%handle), stat, errmsg)
  end subroutine

end module oocarray
