! The paper's calls without a module: external symbols, default integers, all arguments.
program fmpl_external
  implicit none
  external :: fmpl_dsum
  integer :: ma(8), fa(8), ier, rank, size, to, from
  double precision :: sent(1000), got(1000), total(2), work(2)

  call fmpl_init(ma, fa, 8, ier)
  call check(ier)
  call fmpl_comm_rank(0, rank, ier)
  call check(ier)
  call fmpl_comm_size(0, size, ier)
  call check(ier)
  to = mod(rank + 1, size)
  from = mod(rank + size - 1, size)
  sent = rank
  call fmpl_irecv(got, 8000, from, 5, 0, ier)
  call check(ier)
  call fmpl_send(sent, 8000, to, 5, 0, ier)
  call check(ier)
  call fmpl_irecv_wait(from, 5, 0, ier)
  call check(ier)
  if (any(got /= from)) stop 3
  total = [1, rank]
  call fmpl_allreduce(total, 2, fmpl_dsum, 0, work, ier)
  call check(ier)
  if (any(total /= [size, size * (size - 1) / 2])) stop 4
  call fmpl_send(sent, 8, size, 5, 0, ier)
  if (ier /= 1) stop 5
  call fmpl_barrier(0, ier)
  call check(ier)
  call fmpl_finalize(ier)
  call check(ier)
  print "(a,i0,a,i0,a)", "rank ", rank, " of ", size, " is right"
contains
  subroutine check(ier)
    integer, intent(in) :: ier
    if (ier /= 0) then
      print *, "code", ier
      stop 2
    end if
  end subroutine check
end program fmpl_external
