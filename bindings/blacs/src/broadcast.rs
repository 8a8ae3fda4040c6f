//! Broadcasts of a matrix in a scope.
//!
//! Unsafe: matrices are pointers of the program, which it vouches for until the call has ended.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::grid::{Grid, Kind};
use crate::library::{fail, with_grid};
use crate::matrix::{Form, Matrix};
use crate::topology::Topology;
use std::ffi::c_int;

/// Returns the topology of a letter; ends the job if there is none.
pub(crate) fn topology(grid: &Grid, letter: u8) -> Topology {
    Topology::of(letter)
        .unwrap_or_else(|| fail(grid.number(), format_args!("Unknown topology '{}'", char::from(letter))))
}

/// `xxbs2d`, and `xxbr2d` with the place of the source: returns when this process has the matrix and it may be changed.
///
/// # Safety
/// The elements of the matrix are there, and nobody else uses them meanwhile.
pub(crate) unsafe fn broadcast<T: Element>(
    context: c_int,
    (scope, letter): (u8, u8),
    form: Form,
    shape: [c_int; 3],
    at: *mut T,
    source: Option<(c_int, c_int)>,
) {
    with_grid(context, |grid| {
        let (scope, topology) = (grid.scope(scope), topology(grid, letter));
        let members = grid.members(scope);
        let (size, own) = (members.size, members.own);
        let root = source.map_or(own, |(row, column)| members.place(row, column, "the source"));
        let from_root = (own + size - root) % size;
        if source.is_some() && from_root == 0 {
            fail(context, "a process receives its own broadcast");
        }
        let (before, behind) = topology.neighbours(from_root, size);
        let rank = |from_root: usize| members.rank((root + from_root) % size);
        let (slot, matrix) =
            (grid.slot::<T>(Kind::Broadcast(scope)), Matrix::new(context, at.cast_const(), shape, form));
        // SAFETY: the caller promises it.
        unsafe {
            if from_root != 0 {
                matrix.recv(grid, slot, rank(before));
            }
            matrix.send(grid, slot, behind.into_iter().map(rank));
        }
    });
}
