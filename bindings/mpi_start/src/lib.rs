//! The few calls by which many programs of ScaLAPACK use MPI themselves: to start, to ask for their number, to wait for
//! each other, to take the time, and to end. Preloaded behind `libtasuki_blacs.so`, whose calls it makes, by `tasuki run
//! --blacs`. Communicators are not looked at: all processes are meant. Every other call of MPI that is listed here ends
//! the program with its name, because there is no MPI.
//!
//! Unsafe: the functions are symbols of C, and the names of MPI; their pointers are those of the program.
#![allow(unsafe_code)]
#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_double, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

// SAFETY: these are the signatures of `libtasuki_blacs.so`.
unsafe extern "C" {
    fn Cblacs_pinfo(number: *mut c_int, all: *mut c_int);
    fn Cblacs_get(context: c_int, what: c_int, value: *mut c_int);
    fn Cblacs_gridinit(context: *mut c_int, order: *const c_char, rows: c_int, columns: c_int);
    fn Cblacs_barrier(context: c_int, scope: *const c_char);
    fn Cblacs_abort(context: c_int, code: c_int);
    fn Cdwalltime00() -> c_double;
}

const SUCCESS: c_int = 0;
static STARTED: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);

/// The number of this process and of all.
fn numbers() -> (c_int, c_int) {
    let (mut number, mut all) = (0, 0);
    // SAFETY: both places are variables.
    unsafe { Cblacs_pinfo(&mut number, &mut all) };
    (number, all)
}

/// Writes a result, and the code of a call of Fortran.
///
/// # Safety
/// The pointer is null or points to a variable.
unsafe fn write(at: *mut c_int, value: c_int) {
    if !at.is_null() {
        // SAFETY: the caller promises it.
        unsafe { at.write(value) }
    }
}

/// Waits for all processes, in a grid that is made for that at the first time.
fn barrier() {
    static GRID: OnceLock<c_int> = OnceLock::new();
    let scope: &CStr = c"A";
    let grid = *GRID.get_or_init(|| {
        let mut context = 0;
        // SAFETY: the places are variables and constants.
        unsafe {
            Cblacs_get(-1, 0, &mut context);
            Cblacs_gridinit(&mut context, c"R".as_ptr(), 1, numbers().1);
        }
        context
    });
    // SAFETY: the grid is there as long as the process.
    unsafe { Cblacs_barrier(grid, scope.as_ptr()) }
}

/// Defines a call in C, which returns its code, and in Fortran, where the last argument gets it.
macro_rules! calls {
    ($($c:ident $fortran:ident ($($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($c), "`.")]
        ///
        /// # Safety
        /// The pointers point to what MPI says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $c($($argument: $type),*) -> c_int {
            // SAFETY: the program promises it.
            #[allow(unused_unsafe)]
            unsafe { $body }
            SUCCESS
        }

        #[doc = concat!("`", stringify!($c), "` in Fortran.")]
        ///
        /// # Safety
        /// The pointers point to what MPI says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fortran($($argument: $type,)* ierror: *mut c_int) {
            // SAFETY: the program promises it.
            unsafe {
                $body
                write(ierror, SUCCESS);
            }
        }
    )*};
}

calls! {
    MPI_Finalize mpi_finalize_ () { ENDED.store(true, Ordering::Relaxed) }
    MPI_Initialized mpi_initialized_ (flag: *mut c_int) { write(flag, c_int::from(STARTED.load(Ordering::Relaxed))) }
    MPI_Finalized mpi_finalized_ (flag: *mut c_int) { write(flag, c_int::from(ENDED.load(Ordering::Relaxed))) }
    MPI_Comm_rank mpi_comm_rank_ (comm: *mut c_void, rank: *mut c_int) { let _ = comm; write(rank, numbers().0) }
    MPI_Comm_size mpi_comm_size_ (comm: *mut c_void, size: *mut c_int) { let _ = comm; write(size, numbers().1) }
    MPI_Barrier mpi_barrier_ (comm: *mut c_void) { let _ = comm; barrier() }
}

fn start() -> c_int {
    numbers();
    STARTED.store(true, Ordering::Relaxed);
    SUCCESS
}

/// `MPI_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Init(_argc: *mut c_int, _argv: *mut c_void) -> c_int {
    start()
}

/// `MPI_Init` in Fortran.
///
/// # Safety
/// The pointer is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_(ierror: *mut c_int) {
    // SAFETY: the program promises it.
    unsafe { write(ierror, start()) }
}

/// `MPI_Init_thread`: any thread may make any call of BLACS.
///
/// # Safety
/// The pointer is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    _argc: *mut c_int,
    _argv: *mut c_void,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the program promises it.
    unsafe { write(provided, required) };
    start()
}

/// `MPI_Init_thread` in Fortran.
///
/// # Safety
/// The pointers are null or point to variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_thread_(required: *const c_int, provided: *mut c_int, ierror: *mut c_int) {
    // SAFETY: the program promises it.
    unsafe {
        write(provided, required.as_ref().copied().unwrap_or(0));
        write(ierror, start());
    }
}

/// `MPI_Wtime`.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtime() -> c_double {
    // SAFETY: takes nothing.
    unsafe { Cdwalltime00() }
}

/// `MPI_Wtime` in Fortran.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_wtime_() -> c_double {
    MPI_Wtime()
}

/// `MPI_Abort`.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Abort(_comm: *mut c_void, code: c_int) -> c_int {
    // SAFETY: takes numbers.
    unsafe { Cblacs_abort(-1, code) };
    SUCCESS
}

/// `MPI_Abort` in Fortran.
///
/// # Safety
/// The pointers are null or point to variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_abort_(comm: *mut c_void, code: *const c_int, _ierror: *mut c_int) {
    // SAFETY: the program promises it.
    let code = unsafe { code.as_ref() }.copied().unwrap_or(1);
    MPI_Abort(comm, code);
}

/// Ends the job: the program needs an MPI.
fn missing(call: &str) -> c_int {
    eprintln!(
        "tasuki: this program calls {call}, and there is no MPI here, only the calls by which a program starts and ends \
         (MPI_Init, MPI_Comm_rank, MPI_Comm_size, MPI_Barrier, MPI_Wtime, MPI_Abort, MPI_Finalize): start it by the mpiexec \
         of its own MPI"
    );
    // SAFETY: takes numbers.
    unsafe { Cblacs_abort(-1, 1) };
    SUCCESS
}

macro_rules! missing {
    ($($c:ident $fortran:ident)*) => {$(
        /// Not there.
        #[unsafe(no_mangle)]
        pub extern "C" fn $c() -> c_int {
            missing(stringify!($c))
        }

        /// Not there.
        #[unsafe(no_mangle)]
        pub extern "C" fn $fortran() -> c_int {
            missing(stringify!($c))
        }
    )*};
}

missing! {
    MPI_Send mpi_send_ MPI_Recv mpi_recv_ MPI_Isend mpi_isend_ MPI_Irecv mpi_irecv_ MPI_Ssend mpi_ssend_
    MPI_Bsend mpi_bsend_ MPI_Rsend mpi_rsend_ MPI_Sendrecv mpi_sendrecv_ MPI_Sendrecv_replace mpi_sendrecv_replace_
    MPI_Probe mpi_probe_ MPI_Iprobe mpi_iprobe_ MPI_Wait mpi_wait_ MPI_Waitall mpi_waitall_ MPI_Waitany mpi_waitany_
    MPI_Waitsome mpi_waitsome_ MPI_Test mpi_test_ MPI_Testall mpi_testall_ MPI_Testany mpi_testany_
    MPI_Cancel mpi_cancel_ MPI_Send_init mpi_send_init_ MPI_Recv_init mpi_recv_init_ MPI_Start mpi_start_
    MPI_Startall mpi_startall_ MPI_Request_free mpi_request_free_ MPI_Bcast mpi_bcast_ MPI_Ibcast mpi_ibcast_
    MPI_Gather mpi_gather_ MPI_Gatherv mpi_gatherv_ MPI_Scatter mpi_scatter_ MPI_Scatterv mpi_scatterv_
    MPI_Allgather mpi_allgather_ MPI_Allgatherv mpi_allgatherv_ MPI_Alltoall mpi_alltoall_
    MPI_Alltoallv mpi_alltoallv_ MPI_Alltoallw mpi_alltoallw_ MPI_Reduce mpi_reduce_ MPI_Allreduce mpi_allreduce_
    MPI_Iallreduce mpi_iallreduce_ MPI_Reduce_scatter mpi_reduce_scatter_
    MPI_Reduce_scatter_block mpi_reduce_scatter_block_ MPI_Scan mpi_scan_ MPI_Exscan mpi_exscan_
    MPI_Ibarrier mpi_ibarrier_ MPI_Op_create mpi_op_create_ MPI_Op_free mpi_op_free_ MPI_Comm_dup mpi_comm_dup_
    MPI_Comm_split mpi_comm_split_ MPI_Comm_create mpi_comm_create_ MPI_Comm_create_group mpi_comm_create_group_
    MPI_Comm_free mpi_comm_free_ MPI_Comm_group mpi_comm_group_ MPI_Comm_compare mpi_comm_compare_
    MPI_Comm_split_type mpi_comm_split_type_ MPI_Comm_set_errhandler mpi_comm_set_errhandler_
    MPI_Comm_spawn mpi_comm_spawn_ MPI_Comm_get_attr mpi_comm_get_attr_ MPI_Attr_get mpi_attr_get_
    MPI_Group_incl mpi_group_incl_ MPI_Group_excl mpi_group_excl_ MPI_Group_free mpi_group_free_
    MPI_Group_rank mpi_group_rank_ MPI_Group_size mpi_group_size_
    MPI_Group_translate_ranks mpi_group_translate_ranks_ MPI_Cart_create mpi_cart_create_
    MPI_Cart_coords mpi_cart_coords_ MPI_Cart_rank mpi_cart_rank_ MPI_Cart_shift mpi_cart_shift_
    MPI_Cart_sub mpi_cart_sub_ MPI_Dims_create mpi_dims_create_ MPI_Graph_create mpi_graph_create_
    MPI_Type_contiguous mpi_type_contiguous_ MPI_Type_vector mpi_type_vector_ MPI_Type_indexed mpi_type_indexed_
    MPI_Type_create_struct mpi_type_create_struct_ MPI_Type_create_subarray mpi_type_create_subarray_
    MPI_Type_create_resized mpi_type_create_resized_ MPI_Type_commit mpi_type_commit_ MPI_Type_free mpi_type_free_
    MPI_Type_size mpi_type_size_ MPI_Get_count mpi_get_count_ MPI_Pack mpi_pack_ MPI_Unpack mpi_unpack_
    MPI_Pack_size mpi_pack_size_ MPI_Win_create mpi_win_create_ MPI_Win_allocate mpi_win_allocate_
    MPI_Win_free mpi_win_free_ MPI_Win_fence mpi_win_fence_ MPI_Win_lock mpi_win_lock_
    MPI_Win_unlock mpi_win_unlock_ MPI_Put mpi_put_ MPI_Get mpi_get_ MPI_Accumulate mpi_accumulate_
    MPI_Fetch_and_op mpi_fetch_and_op_ MPI_File_open mpi_file_open_ MPI_File_close mpi_file_close_
    MPI_File_read mpi_file_read_ MPI_File_write mpi_file_write_ MPI_File_read_at mpi_file_read_at_
    MPI_File_write_at mpi_file_write_at_ MPI_File_set_view mpi_file_set_view_ MPI_File_read_all mpi_file_read_all_
    MPI_File_write_all mpi_file_write_all_ MPI_Info_create mpi_info_create_ MPI_Info_set mpi_info_set_
    MPI_Info_free mpi_info_free_ MPI_Comm_f2c mpi_comm_f2c_ MPI_Comm_c2f mpi_comm_c2f_
}
