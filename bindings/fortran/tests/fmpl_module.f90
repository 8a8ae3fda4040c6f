! Messages and collective calls of FMPL by the module, on any number of ranks. Ends with a line if all is right.
module maps
  use, intrinsic :: iso_c_binding
  implicit none
contains
  ! The composition of maps x -> a x + b, which does not commute.
  subroutine compose(inout, in, count) bind(C)
    type(c_ptr), value :: inout, in
    integer(c_int), intent(in) :: count
    real(c_double), pointer :: left(:, :), right(:, :)
    integer :: i
    call c_f_pointer(inout, left, [2, int(count)])
    call c_f_pointer(in, right, [2, int(count)])
    do i = 1, count
      left(2, i) = right(1, i) * left(2, i) + right(2, i)
      left(1, i) = right(1, i) * left(1, i)
    end do
  end subroutine compose
end module maps

program fmpl_module
  use, intrinsic :: iso_c_binding
  use fmpl
  use maps
  implicit none
  integer :: ier, rank, size, next, before, odd, nsend, nspool, i
  integer :: number, got
  real(8) :: matrix(6, 8), halo(6, 8), sums(3), map(2, 4), b
  complex(8) :: z(2)
  type(c_funptr) :: op

  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call expect(ier == FMPL_ERR_INIT, "a call before fmpl_init")
  call fmpl_init(0, 0, 16)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank)
  call fmpl_comm_size(FMPL_COMM_WORLD, size)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)

  number = 7 * rank
  call fmpl_irecv(got, 4, before, 3, FMPL_COMM_WORLD, ier)
  call expect(ier == FMPL_SUCCESS, "fmpl_irecv")
  call fmpl_send(number, 4, next, 3, FMPL_COMM_WORLD, ier)
  call expect(ier == FMPL_SUCCESS, "fmpl_send")
  call fmpl_irecv_wait(before, 3, FMPL_COMM_WORLD)
  call expect(got == 7 * before, "the number of the rank before")

  ! A section that is not contiguous: the compiler copies it.
  matrix = reshape([(real(rank * 1000 + i, 8), i = 1, 48)], [6, 8])
  halo = -1
  call fmpl_sendbuf_set(0, 100000, 0)
  call fmpl_send(matrix(2:4, 1:8:2), 3 * 4 * 8, next, 0, FMPL_COMM_WORLD)
  call fmpl_recv(halo(1:3, 2:8:2), 3 * 4 * 8, before, 0, FMPL_COMM_WORLD)
  call fmpl_sendbuf_check(nsend, nspool)
  call expect(all(halo(1:3, 2:8:2) == matrix(2:4, 1:8:2) + 1000 * (before - rank)), "a section")
  call expect(all(halo(4:6, :) == -1) .and. all(halo(:, 1:7:2) == -1), "what is outside of it")
  call fmpl_barrier(FMPL_COMM_WORLD)
  call fmpl_sendbuf_set(0, 0, -1)

  call fmpl_send_any(number, 4, next, 1, FMPL_COMM_WORLD)
  call fmpl_recv_any(got, 4, FMPL_TAG_ANY, FMPL_COMM_WORLD)
  call expect(got == 7 * before, "a message from any rank")

  sums = [1.0d0, real(rank, 8), -3.0d0]
  call fmpl_allreduce(sums, 3, fmpl_dsum, FMPL_COMM_WORLD, sums)
  call expect(all(sums == [real(size, 8), size * (size - 1) / 2.0d0, -3.0d0 * size]), "a sum")
  z = [(1.0d0, 2.0d0), cmplx(rank, -rank, 8)]
  call fmpl_reduce(z, 2, fmpl_zmax, size - 1, FMPL_COMM_WORLD, z)
  call expect(rank /= size - 1 .or. z(2) == cmplx(size - 1, 1 - size, 8), "the largest complex number")

  call fmpl_op_create(compose, 16, 0, op)
  map(1, :) = 2
  map(2, :) = rank
  b = 0
  do i = 0, size - 1
    b = 2 * b + i
  end do
  call fmpl_allreduce(map, 4, compose, FMPL_COMM_WORLD, map)
  call expect(all(map(1, :) == 2.0d0 ** size) .and. all(map(2, :) == b), "an operation of the program")

  call fmpl_comm_create(odd, mod(rank, 2))
  call expect((odd == FMPL_COMM_NULL) .eqv. (mod(rank, 2) == 0), "the communicator of odd ranks")
  if (odd /= FMPL_COMM_NULL) then
    number = rank
    call fmpl_bcast(number, 4, 0, odd)
    call expect(number == 1, "the first odd rank")
    call fmpl_comm_free(odd)
  end if
  call fmpl_finalize(ier)
  call expect(ier == FMPL_SUCCESS, "fmpl_finalize")
  print "(a,i0,a,i0,a)", "rank ", rank, " of ", size, " is right"
contains
  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(*), intent(in) :: what
    if (.not. is_right) then
      print *, "rank", rank, "is wrong: ", what
      stop 3
    end if
  end subroutine expect
end program fmpl_module
