! Matrices in Matrix Market format, and two that are computed.
!
! Source: https://math.nist.gov/MatrixMarket/formats.html
module matrix_market
  implicit none
  private
  public :: entries, read_matrix_market, convection_diffusion

  integer, parameter, public :: dp = kind(1.0d0)

  ! The entries of a matrix, in any order. Rows and columns are numbered from 1, as in the file and in ScaLAPACK.
  ! Entries that the file of a symmetric matrix leaves out are here, too.
  type entries
    integer :: rows = 0, columns = 0, count = 0
    logical :: symmetric = .false.
    integer, allocatable :: row(:), column(:)
    real(dp), allocatable :: value(:)
  end type entries

contains

  ! Reads a real matrix, general or symmetric, from a file of the formats coordinate or array. WHY is blank, or says
  ! what is wrong with the file.
  subroutine read_matrix_market(path, matrix, why)
    character(*), intent(in) :: path
    type(entries), intent(out) :: matrix
    character(*), intent(out) :: why
    integer :: unit, status

    why = "it cannot be opened"
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) return
    why = ""
    call read_from(unit, matrix, why)
    close (unit)
  end subroutine read_matrix_market

  subroutine read_from(unit, matrix, why)
    integer, intent(in) :: unit
    type(entries), intent(inout) :: matrix
    character(*), intent(inout) :: why
    character(1024) :: line
    character(16) :: banner, object, format, field, symmetry
    integer :: status, row, column
    integer(8) :: number, stored ! products of two sizes
    real(dp) :: value

    read (unit, "(a)", iostat=status) line
    if (status == 0) read (line, *, iostat=status) banner, object, format, field, symmetry
    if (status /= 0 .or. lower(banner) /= "%%matrixmarket" .or. lower(object) /= "matrix") then
      why = "its first line is not that of a Matrix Market file"
      return
    end if
    matrix%symmetric = lower(symmetry) == "symmetric"
    if (all(lower(format) /= ["coordinate", "array     "]) .or. all(lower(field) /= ["real   ", "integer"]) &
        .or. .not. (matrix%symmetric .or. lower(symmetry) == "general")) then
      why = "only real matrices, general or symmetric, can be read"
      return
    end if

    do ! comments and empty lines
      read (unit, "(a)", iostat=status) line
      if (status /= 0 .or. (line(1:1) /= "%" .and. line /= "")) exit
    end do
    if (lower(format) == "coordinate") then
      if (status == 0) read (line, *, iostat=status) matrix%rows, matrix%columns, stored
    else
      if (status == 0) read (line, *, iostat=status) matrix%rows, matrix%columns
      stored = int(matrix%rows, 8) * matrix%columns
      if (matrix%symmetric) stored = (stored + matrix%rows) / 2
    end if
    if (status /= 0 .or. matrix%rows < 1 .or. matrix%columns < 1 .or. stored < 0 .or. stored > 10**9 &
        .or. (matrix%symmetric .and. matrix%rows /= matrix%columns)) then
      why = "the line of its size is wrong"
      return
    end if

    call allocate_entries(matrix, int(stored) * merge(2, 1, matrix%symmetric))
    row = 0
    column = 1
    do number = 1, stored
      if (lower(format) == "coordinate") then
        read (unit, *, iostat=status) row, column, value
      else ! column by column, from the diagonal on if symmetric
        row = row + 1
        if (row > matrix%rows) then
          column = column + 1
          row = merge(column, 1, matrix%symmetric)
        end if
        read (unit, *, iostat=status) value
      end if
      if (status /= 0 .or. row < 1 .or. row > matrix%rows .or. column < 1 .or. column > matrix%columns) then
        write (why, "(a,i0,a,i0,a)") "entry ", number, " of ", stored, " is missing or wrong"
        return
      end if
      call add(matrix, row, column, value)
      if (matrix%symmetric .and. row /= column) call add(matrix, column, row, value)
    end do
  end subroutine read_from

  ! The equation -u" + wind . u' on a square of side x side points, with zeros around it: 4 on the diagonal, and up to
  ! four neighbours. Without wind this is Laplace's equation, and symmetric.
  function convection_diffusion(side, wind) result(matrix)
    integer, intent(in) :: side
    real(dp), intent(in) :: wind
    type(entries) :: matrix
    integer :: x, y, here

    matrix%rows = side * side
    matrix%columns = side * side
    matrix%symmetric = abs(wind) <= 0
    call allocate_entries(matrix, 5 * side * side)
    do y = 1, side
      do x = 1, side
        here = x + side * (y - 1)
        call add(matrix, here, here, 4.0_dp)
        if (x > 1) call add(matrix, here, here - 1, -1 - wind)
        if (x < side) call add(matrix, here, here + 1, -1 + wind)
        if (y > 1) call add(matrix, here, here - side, -1 - wind / 2)
        if (y < side) call add(matrix, here, here + side, -1 + wind / 2)
      end do
    end do
  end function convection_diffusion

  subroutine allocate_entries(matrix, most)
    type(entries), intent(inout) :: matrix
    integer, intent(in) :: most
    allocate (matrix%row(most), matrix%column(most), matrix%value(most))
    matrix%count = 0
  end subroutine allocate_entries

  subroutine add(matrix, row, column, value)
    type(entries), intent(inout) :: matrix
    integer, intent(in) :: row, column
    real(dp), intent(in) :: value
    matrix%count = matrix%count + 1
    matrix%row(matrix%count) = row
    matrix%column(matrix%count) = column
    matrix%value(matrix%count) = value
  end subroutine add

  elemental function lower(text)
    character(*), intent(in) :: text
    character(len(text)) :: lower
    integer :: at
    lower = text
    do at = 1, len(text)
      if (text(at:at) >= "A" .and. text(at:at) <= "Z") lower(at:at) = achar(iachar(text(at:at)) + 32)
    end do
  end function lower

end module matrix_market
