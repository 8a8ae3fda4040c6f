! Solves A x = b by LU factorisation (pdgesv).
!
!     tasuki run -n 4 --blacs ./solve [FILE | --generate N] [--grid P Q]
!
! A is read from a Matrix Market file, or is that of convection and diffusion on N x N points (10 x 10 by default).
! The residual is computed from the entries as they were read, without ScaLAPACK.
program solve
  use matrix_market
  use start
  implicit none
  type(options) :: chosen
  type(grid) :: g
  type(entries) :: matrix
  real(dp), allocatable :: a(:, :), b(:, :), x(:)
  integer, allocatable :: pivots(:)
  integer :: desc_a(dlen), desc_b(dlen), n, row, info
  real(dp) :: began, seconds, of_x
  real(dp), external :: dwalltime00
  logical :: right

  call begin(chosen, g)
  matrix = load(chosen, g, 0.4_dp)
  n = matrix%rows
  call distribute(g, matrix, a, desc_a)
  call distributed_zeros(g, n, 1, b, desc_b)
  do row = 1, n
    call pdelset(b, row, 1, desc_b, b_of(row))
  end do

  allocate (pivots(local_rows(g, n) + block))
  began = dwalltime00()
  call pdgesv(n, 1, a, 1, 1, desc_a, pivots, b, 1, 1, desc_b, info)
  seconds = dwalltime00() - began
  x = whole(b(:, 1)) ! b is x now
  of_x = residual(x)
  right = info == 0 .and. of_x < 10 ! not if it is a NaN
  if (g%myrow == 0 .and. g%mycol == 0) then
    if (info /= 0) print "(a,i0)", "pdgesv: info ", info
    print "(a,i0,a,i0,a,i0,3a,es7.1,a)", "n ", n, " on ", g%nprow, " x ", g%npcol, ": ", decimal(seconds), &
      " s, residual ", of_x, " (below 10 is right)"
  end if
  call finish(g, right)

contains

  ! The right-hand side, row by row.
  real(dp) function b_of(row)
    integer, intent(in) :: row
    b_of = 1 + mod(row, 10)
  end function b_of

  ! A vector, of which the first column of the grid has the blocks, as a whole on every process.
  function whole(part) result(all)
    real(dp), intent(in) :: part(:)
    real(dp) :: all(n)
    integer :: i
    all = 0
    if (g%mycol == 0) then
      do i = 1, local_rows(g, n)
        all(global_row(g, i)) = part(i)
      end do
    end if
    call dgsum2d(g%context, "All", " ", n, 1, all, n, -1, -1)
  end function whole

  ! Returns norm(A x - b) / (norm(A) norm(x) n epsilon).
  real(dp) function residual(x)
    real(dp), intent(in) :: x(:)
    real(dp) :: r(n)
    integer :: i, k
    r = [(-b_of(i), i=1, n)]
    do k = 1, matrix%count
      r(matrix%row(k)) = r(matrix%row(k)) + matrix%value(k) * x(matrix%column(k))
    end do
    residual = norm2(r) / (norm2(matrix%value(:matrix%count)) * norm2(x) * n * epsilon(1.0_dp))
  end function residual

end program solve
