! The measurement of the FMPL paper: a message goes to and fro between ranks 0 and 1. Prints time one way and bandwidth.
!
!     tasuki run -n 2 --bind 0,1 ./ping_pong
!
! Source: Tatebe and others, Design and Implementation of FMPL, section 5.
program ping_pong
  use fmpl
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: slot = 0, longest = 2**19
  real(real64), allocatable :: buffer(:)
  integer :: unused(1), rank, size, words, rounds
  integer(int64) :: begin, end, ticks
  real(real64) :: us

  call fmpl_init(unused, unused, 4)
  call fmpl_comm_rank(fmpl_comm_world, rank)
  call fmpl_comm_size(fmpl_comm_world, size)
  allocate (buffer(longest))
  buffer = 0
  if (rank == 0) print "(a10,2a13)", "bytes", "us one way", "MB/s"
  words = 1
  do while (size > 1 .and. rank < 2 .and. words <= longest)
    rounds = merge(10000, 100, words < 2000)
    call play(10)
    call system_clock(begin, ticks)
    call play(rounds)
    call system_clock(end)
    us = real(end - begin, real64) / ticks * 1e6_real64 / rounds / 2
    if (rank == 0) print "(i10,f13.3,f13.1)", 8 * words, us, 8 * words / us
    words = 8 * words
  end do
  if (size == 1) print "(a)", "with one rank there is nobody to send to"
  call fmpl_finalize()
contains
  ! Sends or receives so many messages each way.
  subroutine play(rounds)
    integer, intent(in) :: rounds
    integer :: round
    do round = 1, rounds
      if (rank == 0) call fmpl_send(buffer, 8 * words, 1, slot, fmpl_comm_world)
      call fmpl_recv(buffer, 8 * words, 1 - rank, slot, fmpl_comm_world)
      if (rank == 1) call fmpl_send(buffer, 8 * words, 0, slot, fmpl_comm_world)
    end do
  end subroutine play
end program ping_pong
