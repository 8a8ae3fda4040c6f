! Each rank says who it is, in order: a token goes from rank to rank.
!
!     tasuki run -n 4 ./hello
program hello
  use fmpl
  implicit none
  integer :: unused(1), rank, size, token(1)

  call fmpl_init(unused, unused, 4)          ! 4 slots for each pair of ranks
  call fmpl_comm_rank(fmpl_comm_world, rank)
  call fmpl_comm_size(fmpl_comm_world, size)
  token = 0
  if (rank > 0) call fmpl_recv(token, 4, rank - 1, 0, fmpl_comm_world)
  print "(a,i0,a,i0)", "hello from rank ", rank, " of ", size
  flush (6)
  if (rank + 1 < size) call fmpl_send(token, 4, rank + 1, 0, fmpl_comm_world)
  call fmpl_finalize()
end program hello
