! All eigenvalues and eigenvectors of a symmetric matrix, by divide and conquer (pdsyevd).
!
!     tasuki run -n 4 --blacs ./eigen [FILE | --generate N] [--grid P Q]
!
! The matrix is read from a Matrix Market file, or is the Laplacian on N x N points (10 x 10 by default).
program eigen
  use matrix_market
  use start
  implicit none
  type(options) :: chosen
  type(grid) :: g
  type(entries) :: matrix
  real(dp), allocatable :: a(:, :), z(:, :), r(:, :), w(:)
  integer :: desc(dlen), n, j, info
  real(dp) :: began, seconds, residual, orthogonality
  real(dp), external :: dwalltime00
  logical :: right

  call begin(chosen, g)
  matrix = load(chosen, g, 0.0_dp)
  if (.not. matrix%symmetric) call wrong("eigen takes a symmetric matrix")
  n = matrix%rows
  call distribute(g, matrix, a, desc)
  call distributed_zeros(g, n, n, z, desc)
  allocate (w(n))

  began = dwalltime00()
  call eigenvectors()
  seconds = dwalltime00() - began

  ! A Z - Z W; pdsyevd has overwritten A.
  call distribute(g, matrix, a, desc)
  r = z
  do j = 1, local_columns(g, n)
    r(:, j) = z(:, j) * w(global_column(g, j))
  end do
  call pdsymm("Left", "Lower", n, n, 1.0_dp, a, 1, 1, desc, z, 1, 1, desc, -1.0_dp, r, 1, 1, desc)
  residual = norm(r) / (norm(a) * n * epsilon(1.0_dp))
  ! Z' Z - I
  call pdlaset("All", n, n, 0.0_dp, 1.0_dp, r, 1, 1, desc)
  call pdgemm("Transpose", "No", n, n, n, 1.0_dp, z, 1, 1, desc, z, 1, 1, desc, -1.0_dp, r, 1, 1, desc)
  orthogonality = norm(r) / (n * epsilon(1.0_dp))

  right = info == 0 .and. residual < 10 .and. orthogonality < 10 ! not if one is a NaN
  if (g%myrow == 0 .and. g%mycol == 0) then
    if (info /= 0) print "(a,i0)", "pdsyevd: info ", info
    print "(a,i0,a,i0,a,i0,7a,es7.1,a,es7.1,a)", "n ", n, " on ", g%nprow, " x ", g%npcol, ": ", decimal(seconds), &
      " s, eigenvalues ", decimal(w(1)), " to ", decimal(w(n)), ", residual ", residual, ", orthogonality ", &
      orthogonality, " (below 10 is right)"
  end if
  call finish(g, right)

contains

  ! The eigenvalues w, on all processes, and the eigenvectors z, which are distributed. If n is small, pdsyevd asks for
  ! less work space than pdormtr needs, to which it gives all but 4 n values.
  subroutine eigenvectors()
    real(dp), allocatable :: work(:)
    integer, allocatable :: iwork(:)
    real(dp) :: lwork(1)
    integer :: liwork(1), of_pdormtr
    call pdsyevd("Vectors", "Lower", n, a, 1, 1, desc, w, z, 1, 1, desc, lwork, -1, liwork, -1, info)
    of_pdormtr = (local_rows(g, n) + local_columns(g, n) + 2 * block) * block
    allocate (work(max(int(lwork(1)), 4 * n + of_pdormtr)), iwork(liwork(1)))
    call pdsyevd("Vectors", "Lower", n, a, 1, 1, desc, w, z, 1, 1, desc, work, size(work), iwork, size(iwork), info)
  end subroutine eigenvectors

  ! The Frobenius norm.
  real(dp) function norm(matrix)
    real(dp), intent(in) :: matrix(:, :)
    real(dp), external :: pdlange
    real(dp) :: unused(1)
    norm = pdlange("Frobenius", n, n, matrix, 1, 1, desc, unused)
  end function norm

end program eigen
