! How the programs start and end: their arguments, their grid of processes, and a matrix that is distributed over it.
!
!     PROGRAM [FILE | --generate N] [--grid P Q]
module start
  use matrix_market
  implicit none
  private
  public :: options, grid, begin, wrong, finish, load, distributed_zeros, distribute, local_rows, local_columns
  public :: global_row, global_column, decimal

  integer, parameter, public :: block = 32 ! rows and columns of a block of a distributed matrix
  integer, parameter, public :: dlen = 9   ! the length of a descriptor

  type options
    character(:), allocatable :: file
    integer :: generate = 10 ! N
  end type options

  ! The grid, and the place of this process in it.
  type grid
    integer :: context, nprow, npcol, myrow, mycol
  end type grid

  integer, external :: numroc, indxl2g

contains

  ! Reads the arguments and makes the grid, as square as possible unless the arguments say. A process that is not in
  ! the grid ends here.
  subroutine begin(chosen, g)
    type(options), intent(out) :: chosen
    type(grid), intent(out) :: g
    integer :: number, ranks, nprow, npcol, at, rows
    logical :: generated

    call blacs_pinfo(number, ranks)
    nprow = 1
    do rows = 1, ranks
      if (rows * rows <= ranks .and. mod(ranks, rows) == 0) nprow = rows
    end do
    npcol = ranks / nprow
    generated = .false.
    at = 1
    do while (at <= command_argument_count())
      if (argument(at) == "--generate") then
        chosen%generate = number_of(at + 1)
        generated = .true.
        at = at + 2
      else if (argument(at) == "--grid") then
        nprow = number_of(at + 1)
        npcol = number_of(at + 2)
        at = at + 3
      else if (index(argument(at), "-") == 1 .or. allocated(chosen%file)) then
        call wrong("there is an argument too many, or an unknown option")
      else
        chosen%file = argument(at)
        at = at + 1
      end if
    end do
    if (allocated(chosen%file) .and. generated) call wrong("a FILE and --generate exclude each other")
    if (nprow * npcol > ranks) call wrong("the grid has more places than there are processes")

    call blacs_get(-1, 0, g%context)
    call blacs_gridinit(g%context, "Row", nprow, npcol)
    call blacs_gridinfo(g%context, g%nprow, g%npcol, g%myrow, g%mycol)
    if (g%myrow < 0) then ! more processes than places
      call blacs_exit(0)
      stop
    end if
  end subroutine begin

  function argument(at) result(text)
    integer, intent(in) :: at
    character(:), allocatable :: text
    integer :: length
    call get_command_argument(at, length=length)
    allocate (character(length) :: text)
    if (length > 0) call get_command_argument(at, text)
  end function argument

  ! A number of the arguments, small enough that five times its square is an integer.
  integer function number_of(at) result(number)
    integer, intent(in) :: at
    character(:), allocatable :: text
    integer :: status
    text = argument(at) ! empty if there is none
    number = 0
    read (text, "(i20)", iostat=status) number
    if (status /= 0 .or. number < 1 .or. number > 20000) call wrong("N, P and Q are numbers from 1 to 20000")
  end function number_of

  ! Ends all processes with the code of wrong arguments. All call it; the first one prints the text.
  subroutine wrong(text)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(*), intent(in) :: text
    integer :: number, ranks
    call blacs_pinfo(number, ranks)
    if (number == 0) write (error_unit, "(a/a)") text, "usage: PROGRAM [FILE | --generate N] [--grid P Q]"
    flush (error_unit)
    call blacs_exit(0)
    stop 2, quiet=.true.
  end subroutine wrong

  ! Leaves the grid and the job, and ends with the exit code of the program.
  subroutine finish(g, right)
    use, intrinsic :: iso_fortran_env, only: output_unit
    type(grid), intent(in) :: g
    logical, intent(in) :: right
    flush (output_unit) ! a process that ends with 1 ends the others, too
    call blacs_gridexit(g%context)
    call blacs_exit(0)
    if (.not. right) stop 1, quiet=.true.
  end subroutine finish

  ! The entries of the matrix, on all processes: the first one reads or computes it, and broadcasts it.
  function load(chosen, g, wind) result(matrix)
    type(options), intent(in) :: chosen
    type(grid), intent(in) :: g
    real(dp), intent(in) :: wind
    type(entries) :: matrix
    character(300) :: why
    integer :: sizes(4)
    logical :: first

    first = g%myrow == 0 .and. g%mycol == 0
    why = ""
    if (first .and. allocated(chosen%file)) then
      call read_matrix_market(chosen%file, matrix, why)
      if (why == "" .and. matrix%rows /= matrix%columns) why = "the matrix is not square"
    else if (first) then
      matrix = convection_diffusion(chosen%generate, wind)
    end if
    sizes = [merge(1, 0, why == ""), matrix%rows, merge(1, 0, matrix%symmetric), matrix%count]
    if (first) then
      call igebs2d(g%context, "All", " ", 4, 1, sizes, 4)
    else
      call igebr2d(g%context, "All", " ", 4, 1, sizes, 4, 0, 0)
    end if
    if (sizes(1) == 0) call wrong(chosen%file // ": " // trim(why))
    if (first) then
      call igebs2d(g%context, "All", " ", sizes(4), 1, matrix%row, sizes(4))
      call igebs2d(g%context, "All", " ", sizes(4), 1, matrix%column, sizes(4))
      call dgebs2d(g%context, "All", " ", sizes(4), 1, matrix%value, sizes(4))
    else
      matrix%rows = sizes(2)
      matrix%columns = sizes(2)
      matrix%symmetric = sizes(3) == 1
      matrix%count = sizes(4)
      allocate (matrix%row(sizes(4)), matrix%column(sizes(4)), matrix%value(sizes(4)))
      call igebr2d(g%context, "All", " ", sizes(4), 1, matrix%row, sizes(4), 0, 0)
      call igebr2d(g%context, "All", " ", sizes(4), 1, matrix%column, sizes(4), 0, 0)
      call dgebr2d(g%context, "All", " ", sizes(4), 1, matrix%value, sizes(4), 0, 0)
    end if
  end function load

  ! Makes a matrix of zeros, of which this process gets its blocks, and the descriptor of the matrix.
  subroutine distributed_zeros(g, rows, columns, a, desc)
    type(grid), intent(in) :: g
    integer, intent(in) :: rows, columns
    real(dp), allocatable, intent(out) :: a(:, :)
    integer, intent(out) :: desc(dlen)
    integer :: lld, info
    lld = max(1, local_rows(g, rows))
    allocate (a(lld, max(1, local_columns(g, columns))), source=0.0_dp)
    call descinit(desc, rows, columns, block, block, 0, 0, g%context, lld, info)
  end subroutine distributed_zeros

  ! Distributes a matrix by blocks over the grid.
  subroutine distribute(g, matrix, a, desc)
    type(grid), intent(in) :: g
    type(entries), intent(in) :: matrix
    real(dp), allocatable, intent(out) :: a(:, :)
    integer, intent(out) :: desc(dlen)
    integer :: k
    call distributed_zeros(g, matrix%rows, matrix%columns, a, desc)
    do k = 1, matrix%count ! pdelset changes an element on the process that has it
      call pdelset(a, matrix%row(k), matrix%column(k), desc, matrix%value(k))
    end do
  end subroutine distribute

  ! How many rows and columns of a matrix this process has.
  integer function local_rows(g, rows)
    type(grid), intent(in) :: g
    integer, intent(in) :: rows
    local_rows = numroc(rows, block, g%myrow, 0, g%nprow)
  end function local_rows

  integer function local_columns(g, columns)
    type(grid), intent(in) :: g
    integer, intent(in) :: columns
    local_columns = numroc(columns, block, g%mycol, 0, g%npcol)
  end function local_columns

  ! The number of a local row or column in the whole matrix.
  integer function global_row(g, local)
    type(grid), intent(in) :: g
    integer, intent(in) :: local
    global_row = indxl2g(local, block, g%myrow, 0, g%nprow)
  end function global_row

  integer function global_column(g, local)
    type(grid), intent(in) :: g
    integer, intent(in) :: local
    global_column = indxl2g(local, block, g%mycol, 0, g%npcol)
  end function global_column

  ! The value with four digits behind the point, and no blanks before.
  function decimal(value) result(text)
    real(dp), intent(in) :: value
    character(:), allocatable :: text
    character(30) :: padded
    write (padded, "(f30.4)") value
    text = trim(adjustl(padded))
  end function decimal

end module start
