//! Making and leaving grids, and what a process asks about its grid.

use crate::creation::{create, in_order, leave, mapped};
use crate::environment::processes;
use crate::grid::Scope;
use crate::library::{GRIDS, LAST, fail, library, or_fail, with_grid};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tasuki::Rank;

/// Returns the shape of a grid; ends the job if the system handle has not so many processes.
fn shape(context: c_int, rows: c_int, columns: c_int, most: usize) -> (usize, usize) {
    let fits = |rows: usize, columns: usize| {
        (rows > 0 && columns > 0 && rows.checked_mul(columns)? <= most).then_some((rows, columns))
    };
    let shape = usize::try_from(rows).ok().zip(usize::try_from(columns).ok());
    shape
        .and_then(|(rows, columns)| fits(rows, columns))
        .unwrap_or_else(|| fail(context, format_args!("Illegal grid ({rows} x {columns}), #procs={most}")))
}

/// Returns the processes of a system handle; ends the job if there is no such handle.
fn all_of(handle: c_int) -> Arc<[Rank]> {
    processes(handle).unwrap_or_else(|| {
        fail(-1, format_args!("No system context corresponding to BLACS system context handle {handle}"))
    })
}

/// `blacs_gridinit`. Returns the number of the context; -1 on a process that is not in the grid.
pub(crate) fn init(handle: c_int, order: u8, rows: c_int, columns: c_int) -> c_int {
    let all = all_of(handle);
    let shape = shape(handle, rows, columns, all.len());
    make(in_order(&all, shape, order.eq_ignore_ascii_case(&b'c')), shape)
}

/// `blacs_gridmap`: entry (row, column) is the number of a process of the system handle.
pub(crate) fn map(
    handle: c_int,
    entry: impl Fn(usize, usize) -> c_int,
    rows: c_int,
    columns: c_int,
) -> c_int {
    let all = all_of(handle);
    let shape = shape(handle, rows, columns, all.len());
    match mapped(&all, shape, entry) {
        Ok(ranks) => make(ranks, shape),
        Err(number) => fail(
            handle,
            format_args!("the map of the grid names process {number}, and there are 0 to {}", all.len() - 1),
        ),
    }
}

fn make(ranks: Vec<Rank>, shape: (usize, usize)) -> c_int {
    let library = library();
    if !ranks.contains(&library.job.rank()) {
        return -1;
    }
    let grid = create(library, ranks, shape).unwrap_or_else(|text| fail(-1, text));
    let grid = Arc::new(grid);
    let number = GRIDS.add(grid.clone());
    grid.number.store(number, Ordering::Relaxed);
    number
}

/// `blacs_gridinfo`: rows, columns, and the row and column of this process; -1 for a number that is no grid.
pub(crate) fn info(context: c_int) -> [c_int; 4] {
    GRIDS.with(&LAST, context, |grid| match grid {
        Some(grid) => [grid.rows, grid.columns, grid.me.0, grid.me.1].map(|number| number as c_int),
        None => [-1; 4],
    })
}

/// `blacs_gridexit`.
pub(crate) fn exit(context: c_int) {
    match GRIDS.remove(&LAST, context) {
        Some(grid) => or_fail(context, leave(library(), &grid)),
        None => fail(context, "Trying to exit non-existent context"),
    }
}

/// `blacs_pnum`: the number in the grid of the process at a place; -1 if there is none.
pub(crate) fn number(context: c_int, row: c_int, column: c_int) -> c_int {
    with_grid(context, |grid| {
        let (rows, columns) = (grid.rows as c_int, grid.columns as c_int);
        let is_there = (0..rows).contains(&row) && (0..columns).contains(&column);
        if is_there { row * columns + column } else { -1 }
    })
}

/// `blacs_pcoord`: the place of the process with a number; (-1, -1) if there is none.
pub(crate) fn place(context: c_int, number: c_int) -> (c_int, c_int) {
    with_grid(context, |grid| {
        let columns = grid.columns as c_int;
        let is_there = (0..grid.ranks.len() as c_int).contains(&number);
        if is_there { (number / columns, number % columns) } else { (-1, -1) }
    })
}

/// `blacs_barrier`. A scope that does not exist is no error, and nothing is waited for.
pub(crate) fn barrier(context: c_int, scope: u8) {
    if let Some(scope) = Scope::of(scope) {
        with_grid(context, |grid| crate::combine::barrier(grid, scope));
    }
}
