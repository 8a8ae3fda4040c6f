//! The operations of reductions: `fmpl_{i,s,d,c,z}{sum,max,min}`, and those of the program.
//!
//! An operation is named by its function. Those of FMPL are functions, too, which a program may call.
//!
//! Unsafe: operations are functions of C, which combine as many elements as they are told.
#![allow(unsafe_code)]

use super::arguments::result;
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use std::sync::{PoisonError, RwLock};
use tasuki::bindings::Operator;
use tasuki::collective::{Complex, MaxAbs, MinAbs, ReduceOp};
use tasuki::{Pod, Sum};

/// Combines `count` elements of `in` with those of `inout`.
pub type FmplFunction = unsafe extern "C" fn(inout: *mut c_void, with: *const c_void, count: *const c_int);

/// An operation of the program.
#[derive(Clone, Copy)]
pub(super) struct UserOperation {
    function: FmplFunction,
    bytes: usize,
}

impl UserOperation {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes that begin where values of any type of C may begin.
#[repr(align(16))]
#[derive(Clone, Copy)]
struct Aligned {
    _bytes: [u8; 16],
}

impl Operator for UserOperation {
    fn value_bytes(&self) -> usize {
        self.bytes
    }

    fn combine(&self, left: &mut [u8], right: &[u8]) {
        let needs = (1 << self.bytes.trailing_zeros()).min(align_of::<Aligned>());
        let is_aligned = |bytes: &[u8]| bytes.as_ptr().addr().is_multiple_of(needs);
        if is_aligned(left) && is_aligned(right) {
            return self.apply(left, right);
        }
        let room = || vec![Aligned { _bytes: [0; 16] }; left.len().div_ceil(16)];
        let (mut own_left, mut own_right) = (room(), room());
        let copy = |of: &mut Vec<Aligned>, from: &[u8]| -> *mut u8 {
            let at = of.as_mut_ptr().cast::<u8>();
            // SAFETY: the room has as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at, from.len()) };
            at
        };
        let (left_at, right_at) = (copy(&mut own_left, left), copy(&mut own_right, right));
        // SAFETY: both rooms have that many bytes, which were copied there.
        let (own_left, own_right) = unsafe {
            (
                std::slice::from_raw_parts_mut(left_at, left.len()),
                std::slice::from_raw_parts(right_at, right.len()),
            )
        };
        self.apply(own_left, own_right);
        left.copy_from_slice(own_left);
    }
}

impl UserOperation {
    fn apply(&self, left: &mut [u8], right: &[u8]) {
        let count = (left.len() / self.bytes) as c_int;
        // SAFETY: the program has promised in fmpl_op_create that its function combines as many elements of that size.
        unsafe { (self.function)(left.as_mut_ptr().cast(), right.as_ptr().cast(), &count) }
    }
}

static OPERATIONS: RwLock<Vec<UserOperation>> = RwLock::new(Vec::new());

/// Returns the operation of the program that was made of that function.
pub(super) fn user_operation(function: FmplFunction) -> Option<UserOperation> {
    let operations = OPERATIONS.read().unwrap_or_else(PoisonError::into_inner);
    operations.iter().rev().find(|known| known.function as usize == function as usize).copied()
}

macro_rules! builtin {
    ($($name:ident / $fortran:ident: $type:ty, $operation:expr;)*) => {
        $(
            /// The operation of FMPL of that name, applied to `count` elements.
            ///
            /// # Safety
            /// Both pointers point to that many elements.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(inout: *mut c_void, with: *const c_void, count: *const c_int) {
                // SAFETY: the caller promises it.
                unsafe { combine::<$type>(&$operation, inout, with, count) }
            }

            /// The same for Fortran.
            ///
            /// # Safety
            /// Both pointers point to that many elements.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $fortran(inout: *mut c_void, with: *const c_void, count: *const c_int) {
                // SAFETY: the caller promises it.
                unsafe { combine::<$type>(&$operation, inout, with, count) }
            }
        )*

        /// What a reduction does with an operation of FMPL.
        pub(super) trait WithBuiltin {
            type Output;
            fn with<T: Pod, O: ReduceOp<T>>(self, operation: O) -> Self::Output;
        }

        /// Calls `with` with the operation of FMPL that is this function; returns `with` if it is none.
        pub(super) fn builtin<W: WithBuiltin>(function: FmplFunction, with: W) -> Result<W::Output, W> {
            let is = |other: FmplFunction| function as usize == other as usize;
            $(if is($name) || is($fortran) {
                return Ok(with.with::<$type, _>($operation));
            })*
            Err(with)
        }
    };
}

builtin! {
    fmpl_isum / fmpl_isum_: c_int, Sum;
    fmpl_ssum / fmpl_ssum_: f32, Sum;
    fmpl_dsum / fmpl_dsum_: f64, Sum;
    fmpl_csum / fmpl_csum_: Complex<f32>, Sum;
    fmpl_zsum / fmpl_zsum_: Complex<f64>, Sum;
    fmpl_imax / fmpl_imax_: c_int, MaxAbs;
    fmpl_smax / fmpl_smax_: f32, MaxAbs;
    fmpl_dmax / fmpl_dmax_: f64, MaxAbs;
    fmpl_cmax / fmpl_cmax_: Complex<f32>, MaxAbs;
    fmpl_zmax / fmpl_zmax_: Complex<f64>, MaxAbs;
    fmpl_imin / fmpl_imin_: c_int, MinAbs;
    fmpl_smin / fmpl_smin_: f32, MinAbs;
    fmpl_dmin / fmpl_dmin_: f64, MinAbs;
    fmpl_cmin / fmpl_cmin_: Complex<f32>, MinAbs;
    fmpl_zmin / fmpl_zmin_: Complex<f64>, MinAbs;
}

/// # Safety
/// Both pointers point to `count` values of type `T`.
unsafe fn combine<T: Pod>(
    operation: &impl ReduceOp<T>,
    inout: *mut c_void,
    with: *const c_void,
    count: *const c_int,
) {
    // SAFETY: the caller promises it.
    unsafe {
        let count = count.as_ref().map_or(0, |&count| usize::try_from(count).unwrap_or(0));
        if count != 0 && !inout.is_null() && !with.is_null() {
            let left = std::slice::from_raw_parts_mut(inout.cast::<T>(), count);
            operation.combine(left, std::slice::from_raw_parts(with.cast::<T>(), count));
        }
    }
}

calls! {
    /// Makes an operation of a function of the program that combines elements of `bytes` bytes each. `op` gets what
    /// names the operation: the function. `commutes` is not used: values are combined in the order of the ranks.
    fmpl_op_create / fmpl_op_create_(
        function: at Option<FmplFunction>, bytes: in c_int, commutes: in c_int, op: at *mut Option<FmplFunction>
    ) {
        let _ = commutes;
        // SAFETY: the caller promises it.
        let op = unsafe { result(op, "op")? };
        let function = function.ok_or_else(|| Failure::misuse("function is null"))?;
        if bytes < 1 {
            return Err(Failure::misuse(format!("bytes is {bytes}, and must be 1 or more")));
        }
        let mut operations = OPERATIONS.write().unwrap_or_else(PoisonError::into_inner);
        operations.retain(|known| known.function as usize != function as usize);
        operations.push(UserOperation { function, bytes: bytes as usize });
        *op = Some(function);
        Ok(())
    }
}
