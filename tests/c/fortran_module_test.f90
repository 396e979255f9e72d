! Tests of the module oocarray: Fortran's order of dimensions, numbers from 1, and how failures are told.
program fortran_module_test
  use oocarray
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_size_t), parameter :: n = 1500, m = 400
  type(ooc_runtime) :: rt
  type(ooc_store) :: s
  type(ooc_array) :: a, b, both(2)
  type(ooc_pin) :: pin
  real(c_double), pointer :: u(:, :) => null(), v(:, :) => null()
  real(c_double), target :: values(2)
  integer(c_int32_t), pointer :: w(:) => null()
  character(:), allocatable :: text
  character(200) :: why
  integer :: stat, faults
  integer(c_size_t) :: i, j

  faults = 0
  call ooc_runtime_create(rt, memory=4194304_c_int64_t)
  call ooc_store_open(s, "local:store")

  call ooc_array_create(a, rt, s, "a", "f8", [n, m])
  call check(all(ooc_array_shape(a) == [n, m]) .and. ooc_array_type(a) == "f8", "shape and type")
  call c_f_pointer(ooc_array_data(a), u, ooc_array_shape(a))
  do j = 1, m
    do i = 1, n
      u(i, j) = real(i + 1000 * j, c_double)
    end do
  end do
  call ooc_array_writeback(a, durable=.true.)
  call ooc_array_invalidate(a)
  call check(u(300, 400) == 400300 .and. u(7, 1) == 1007, "elements are where they were written")

  ! The second element in memory is (2, 1): number 2.
  call ooc_array_gather(a, [2_c_size_t, n * m], c_loc(values))
  call check(values(1) == 1002 .and. values(2) == 401500, "numbers count from 1, the first index fastest")
  values = [-2.0_c_double, -3.0_c_double]
  call ooc_array_scatter(a, [2_c_size_t, n * m], c_loc(values))
  call check(u(2, 1) == -2 .and. u(n, m) == -3, "scatter")
  call ooc_array_gather(a, [n * m + 1], c_loc(values), stat=stat, errmsg=why)
  call check(stat /= 0 .and. index(why, "'a'") > 0, "a number outside")

  ! A column, with its upper bound in it.
  call ooc_array_prefetch(a, [1_c_size_t, m], [n, m])
  call ooc_array_prefetch(a, [1_c_size_t, m], [n, m + 1], stat=stat)
  call check(stat /= 0, "a box outside")
  call ooc_array_overwrite(a, [1_c_size_t, 1_c_size_t], [n, 1_c_size_t])
  u(:, 1) = 5
  call ooc_array_pin(pin, a, [1_c_size_t, 1_c_size_t], [n, 1_c_size_t], write=.false.)
  call check(sum(u(:, 1)) == 5 * n, "a pinned column")
  call ooc_array_close(a, stat=stat, errmsg=why)
  call check(stat == -8 .and. index(why, "release them") > 0 .and. u(1, 1) == 5, "an array with a pin stays open")
  call ooc_pin_release(pin)
  call ooc_array_resize(a, [200_c_size_t], stat=stat, errmsg=why)
  call check(stat == -1 .and. index(why, "'a' has 2 dimensions, and a list 1 numbers") > 0, "a list that is too short")
  call ooc_array_prefetch(a, [1_c_size_t, 1_c_size_t], [n], stat=stat)
  call check(stat == -1, "a box with too few upper bounds")
  call ooc_array_overwrite(a, [1_c_size_t], [n, m], stat=stat)
  call check(stat == -1, "a box with too few lower bounds")
  call ooc_array_pin(pin, a, [1_c_size_t, 1_c_size_t, 1_c_size_t], [n, m, m], write=.false., stat=stat)
  call check(stat == -1, "a box with too many bounds")
  call ooc_array_advise(a, ooc_sequential)
  call ooc_array_set_attribute(a, "units", "metres per second")
  call ooc_array_attribute(a, "units", text)
  call check(text == "metres per second", "attributes")
  call ooc_array_attribute(a, "none", text, stat=stat, errmsg=why)
  call check(stat /= 0 .and. index(why, "'none'") > 0, "no such attribute")
  call ooc_array_close(a)
  call ooc_array_resize(a, [n, m], stat=stat, errmsg=why)
  call check(stat == -1 .and. index(why, "closed") > 0, "resizing what has been closed")

  call ooc_array_open(b, rt, s, "a", ooc_read_only)
  call c_f_pointer(ooc_array_data(b), v, ooc_array_shape(b))
  call check(v(1, 1) == 5 .and. v(3, 2) == 2003, "read again")
  call ooc_array_close(b)

  call ooc_array_create(a, rt, s, "w", "i4", [10_c_size_t], max_shape=[100_c_size_t, 1_c_size_t], stat=stat, errmsg=why)
  call check(stat == -1 .and. index(why, "'w'") > 0, "limits of more dimensions than there are")
  call ooc_array_create(a, rt, s, "w", "i4", [10_c_size_t], max_shape=[100_c_size_t], sparse=.true.)
  call ooc_array_resize(a, [50_c_size_t])
  call c_f_pointer(ooc_array_data(a), w, ooc_array_shape(a))
  call check(size(w) == 50 .and. all(w == 0), "resized")
  call ooc_array_resize(a, [101_c_size_t], stat=stat, errmsg=why)
  call check(stat /= 0 .and. index(why, "'w'") > 0, "too large")
  call ooc_array_close(a)

  call ooc_array_create(both(1), rt, s, "x", "i4", [10_c_size_t], commits=.true.)
  call ooc_array_create(both(2), rt, s, "y", "i4", [10_c_size_t], commits=.true.)
  call c_f_pointer(ooc_array_data(both(1)), w, [10])
  w = 3
  call ooc_commit(both, "step", "1200")
  w = 4
  call ooc_array_roll_back(both(1))
  call c_f_pointer(ooc_array_data(both(1)), w, [10])
  call check(all(w == 3) .and. ooc_array_last_commit(both(2)) == 1, "commits")
  call ooc_array_commit_attribute(both(2), "step", text)
  call check(text == "1200", "what was given with it")
  call ooc_array_close(both(1))
  call ooc_array_close(both(2))

  call ooc_array_open(b, rt, s, "none", ooc_read_write, stat=stat, errmsg=why)
  call check(stat == 2 .and. index(why, "'none'") > 0, "no such array")
  call ooc_store_remove(s, "w")
  call ooc_store_close(s)
  call ooc_runtime_destroy(rt)
  if (faults /= 0) error stop 1

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    print '(2a)', "not as it should be: ", what
    faults = faults + 1
  end subroutine
end program
