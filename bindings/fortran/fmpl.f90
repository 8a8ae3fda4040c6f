! FMPL over Tasuki, for Fortran. fmpl.h says what each call does.
!
! Compiled by `cargo xtask install`, or by hand: gfortran -c fmpl.f90. A program that uses the module is linked with
! -ltasuki. Programs may also call the same names without the module, as in the paper: `call fmpl_send(buf, size, dst,
! mai, comm, ier)`, with all arguments.
!
! Buffers may have any type and rank. The compiler copies an array section that is not contiguous, so do not pass one to
! fmpl_isend or fmpl_irecv, whose buffers are used after the call. Sizes are in bytes. `ier` may be left out.
module fmpl
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_funptr
  implicit none
  private

  integer(c_int), parameter, public :: FMPL_SUCCESS = 0
  integer(c_int), parameter, public :: FMPL_ERR_MISUSE = 1
  integer(c_int), parameter, public :: FMPL_ERR_DISAGREEMENT = 2
  integer(c_int), parameter, public :: FMPL_ERR_PEER = 3
  integer(c_int), parameter, public :: FMPL_ERR_TIMEOUT = 4
  integer(c_int), parameter, public :: FMPL_ERR_FULL = 5
  integer(c_int), parameter, public :: FMPL_ERR_NO_MEMORY = 6
  integer(c_int), parameter, public :: FMPL_ERR_PROGRAM = 7
  integer(c_int), parameter, public :: FMPL_ERR_SYSTEM = 8
  integer(c_int), parameter, public :: FMPL_ERR_BUG = 9
  integer(c_int), parameter, public :: FMPL_ERR_INIT = 10
  integer(c_int), parameter, public :: FMPL_TAG_ANY = -1
  integer(c_int), parameter, public :: FMPL_COMM_WORLD = 0
  integer(c_int), parameter, public :: FMPL_COMM_NULL = -1
  integer(c_int), parameter, public :: FMPL_SENDBUF_OVERHEAD = 1024

  public :: fmpl_function, fmpl_init, fmpl_finalize, fmpl_send, fmpl_recv, fmpl_isend, fmpl_irecv
  public :: fmpl_isend_wait, fmpl_irecv_wait, fmpl_sendbuf_set, fmpl_sendbuf_check, fmpl_send_any
  public :: fmpl_recv_any, fmpl_comm_create, fmpl_comm_rank, fmpl_comm_size, fmpl_comm_free
  public :: fmpl_barrier, fmpl_bcast, fmpl_op_create, fmpl_reduce, fmpl_allreduce
  public :: fmpl_isum, fmpl_ssum, fmpl_dsum, fmpl_csum, fmpl_zsum, fmpl_imax, fmpl_smax, fmpl_dmax
  public :: fmpl_cmax, fmpl_zmax, fmpl_imin, fmpl_smin, fmpl_dmin, fmpl_cmin, fmpl_zmin

  abstract interface
    ! An operation: combines count elements, inout = inout . in.
    subroutine fmpl_function(inout, in, count) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_function
  end interface

  interface
    subroutine fmpl_init(ma, fa, count, ier) &
      bind(C, name="fmpl_init_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: ma
      type(*), dimension(*), intent(in) :: ma
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: fa
      type(*), dimension(*), intent(in) :: fa
      integer(c_int), intent(in) :: count
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_init

    subroutine fmpl_finalize(ier) &
      bind(C, name="fmpl_finalize_")
      import :: c_int
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_finalize

    subroutine fmpl_send(buf, size, dst, mai, comm, ier) &
      bind(C, name="fmpl_send_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_send

    subroutine fmpl_recv(buf, size, src, mai, comm, ier) &
      bind(C, name="fmpl_recv_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_recv

    subroutine fmpl_isend(buf, size, dst, mai, comm, ier) &
      bind(C, name="fmpl_isend_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_isend

    subroutine fmpl_irecv(buf, size, src, mai, comm, ier) &
      bind(C, name="fmpl_irecv_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_irecv

    subroutine fmpl_isend_wait(dst, mai, comm, ier) &
      bind(C, name="fmpl_isend_wait_")
      import :: c_int
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_isend_wait

    subroutine fmpl_irecv_wait(src, mai, comm, ier) &
      bind(C, name="fmpl_irecv_wait_")
      import :: c_int
      integer(c_int), intent(in) :: src
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_irecv_wait

    subroutine fmpl_sendbuf_set(buf, size, ipara, ier) &
      bind(C, name="fmpl_sendbuf_set_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: ipara
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_sendbuf_set

    subroutine fmpl_sendbuf_check(nsend, nspool, ier) &
      bind(C, name="fmpl_sendbuf_check_")
      import :: c_int
      integer(c_int), intent(out) :: nsend
      integer(c_int), intent(out) :: nspool
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_sendbuf_check

    subroutine fmpl_send_any(buf, size, dst, mai, comm, ier) &
      bind(C, name="fmpl_send_any_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(in) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: dst
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_send_any

    subroutine fmpl_recv_any(buf, size, mai, comm, ier) &
      bind(C, name="fmpl_recv_any_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: mai
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_recv_any

    subroutine fmpl_comm_create(comm, key, ier) &
      bind(C, name="fmpl_comm_create_")
      import :: c_int
      integer(c_int), intent(inout) :: comm
      integer(c_int), intent(in) :: key
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_comm_create

    subroutine fmpl_comm_rank(comm, rank, ier) &
      bind(C, name="fmpl_comm_rank_")
      import :: c_int
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: rank
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_comm_rank

    subroutine fmpl_comm_size(comm, size, ier) &
      bind(C, name="fmpl_comm_size_")
      import :: c_int
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out) :: size
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_comm_size

    subroutine fmpl_comm_free(comm, ier) &
      bind(C, name="fmpl_comm_free_")
      import :: c_int
      integer(c_int), intent(inout) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_comm_free

    subroutine fmpl_barrier(comm, ier) &
      bind(C, name="fmpl_barrier_")
      import :: c_int
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_barrier

    subroutine fmpl_bcast(buf, size, root, comm, ier) &
      bind(C, name="fmpl_bcast_")
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: size
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_bcast

    subroutine fmpl_op_create(func, bytes, commutes, op, ier) &
      bind(C, name="fmpl_op_create_")
      import :: c_int, c_funptr, fmpl_function
      procedure(fmpl_function) :: func
      integer(c_int), intent(in) :: bytes
      integer(c_int), intent(in) :: commutes
      type(c_funptr), intent(out) :: op
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_op_create

    subroutine fmpl_reduce(buf, count, func, root, comm, work, ier) &
      bind(C, name="fmpl_reduce_")
      import :: c_int, fmpl_function
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: count
      procedure(fmpl_function) :: func
      integer(c_int), intent(in) :: root
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      type(*), dimension(*), intent(inout) :: work
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_reduce

    subroutine fmpl_allreduce(buf, count, func, comm, work, ier) &
      bind(C, name="fmpl_allreduce_")
      import :: c_int, fmpl_function
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), intent(inout) :: buf
      integer(c_int), intent(in) :: count
      procedure(fmpl_function) :: func
      integer(c_int), intent(in) :: comm
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: work
      type(*), dimension(*), intent(inout) :: work
      integer(c_int), intent(out), optional :: ier
    end subroutine fmpl_allreduce

    subroutine fmpl_isum(inout, in, count) bind(C, name="fmpl_isum")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_isum

    subroutine fmpl_ssum(inout, in, count) bind(C, name="fmpl_ssum")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_ssum

    subroutine fmpl_dsum(inout, in, count) bind(C, name="fmpl_dsum")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_dsum

    subroutine fmpl_csum(inout, in, count) bind(C, name="fmpl_csum")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_csum

    subroutine fmpl_zsum(inout, in, count) bind(C, name="fmpl_zsum")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_zsum

    subroutine fmpl_imax(inout, in, count) bind(C, name="fmpl_imax")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_imax

    subroutine fmpl_smax(inout, in, count) bind(C, name="fmpl_smax")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_smax

    subroutine fmpl_dmax(inout, in, count) bind(C, name="fmpl_dmax")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_dmax

    subroutine fmpl_cmax(inout, in, count) bind(C, name="fmpl_cmax")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_cmax

    subroutine fmpl_zmax(inout, in, count) bind(C, name="fmpl_zmax")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_zmax

    subroutine fmpl_imin(inout, in, count) bind(C, name="fmpl_imin")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_imin

    subroutine fmpl_smin(inout, in, count) bind(C, name="fmpl_smin")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_smin

    subroutine fmpl_dmin(inout, in, count) bind(C, name="fmpl_dmin")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_dmin

    subroutine fmpl_cmin(inout, in, count) bind(C, name="fmpl_cmin")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_cmin

    subroutine fmpl_zmin(inout, in, count) bind(C, name="fmpl_zmin")
      import :: c_int, c_ptr
      type(c_ptr), value :: inout, in
      integer(c_int), intent(in) :: count
    end subroutine fmpl_zmin
  end interface
end module fmpl
