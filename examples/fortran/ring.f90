! The sum of all ranks, by values that go round a ring: each rank adds what comes, and passes it on.
!
!     tasuki run -n 4 ./ring
program ring
  use fmpl
  implicit none
  integer, parameter :: slot = 0
  integer :: unused(1), rank, size, next, previous, step, ier
  integer :: passed(1), came(1), total, same(1), work(1)

  call fmpl_init(unused, unused, 4, ier)
  if (ier /= FMPL_SUCCESS) stop 1
  call fmpl_comm_rank(fmpl_comm_world, rank)
  call fmpl_comm_size(fmpl_comm_world, size)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)
  passed = rank
  total = rank
  do step = 1, size - 1
    call fmpl_irecv(came, 4, previous, slot, fmpl_comm_world)
    call fmpl_send(passed, 4, next, slot, fmpl_comm_world)
    call fmpl_irecv_wait(previous, slot, fmpl_comm_world)
    passed = came
    total = total + came(1)
  end do
  same = rank
  call fmpl_allreduce(same, 1, fmpl_isum, fmpl_comm_world, work)
  if (rank == 0) print "(a,i0,a,i0,a)", "the ranks add up to ", total, " by the ring and to ", same, " by fmpl_allreduce"
  call fmpl_finalize()
  if (total /= size * (size - 1) / 2 .or. same(1) /= total) stop 2
end program ring
