//! Sending a matrix to one process, and receiving it.
//!
//! Unsafe: matrices are pointers of the program, which it vouches for until the call has ended.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::grid::Kind;
use crate::library::with_grid;
use crate::matrix::{Form, Matrix};
use std::ffi::c_int;

/// `xxsd2d`: returns when the matrix may be changed, whether or not its receive was posted.
///
/// # Safety
/// The elements of the matrix are there, and nobody changes them meanwhile.
pub(crate) unsafe fn send<T: Element>(
    context: c_int,
    form: Form,
    shape: [c_int; 3],
    at: *const T,
    (row, column): (c_int, c_int),
) {
    with_grid(context, |grid| {
        let to = grid.process(row, column, "the destination");
        let slot = grid.slot::<T>(Kind::PointToPoint);
        // SAFETY: the caller promises it.
        unsafe { Matrix::new(context, at, shape, form).send(grid, slot, [to]) };
    });
}

/// `xxrv2d`: waits for the oldest message of that process.
///
/// # Safety
/// The elements of the matrix are there, and nobody else uses them meanwhile.
pub(crate) unsafe fn recv<T: Element>(
    context: c_int,
    form: Form,
    shape: [c_int; 3],
    at: *mut T,
    (row, column): (c_int, c_int),
) {
    with_grid(context, |grid| {
        let from = grid.process(row, column, "the source");
        let slot = grid.slot::<T>(Kind::PointToPoint);
        // SAFETY: the caller promises it.
        unsafe { Matrix::new(context, at.cast_const(), shape, form).recv(grid, slot, from) };
    });
}
