//! Starting, ending, system handles and settings.

use crate::grid::Grid;
use crate::library::{GRIDS, LAST, library, lock, warn, with_grid};
use std::ffi::c_int;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use tasuki::Rank;
use tasuki_c::process_rank;

/// The system handle of all processes.
const ALL: c_int = 0;
/// System handles of grids are this and the number of the context. Smaller ones are contexts, which ScaLAPACK passes, too.
const OF_GRIDS: c_int = 1 << 24;
/// The largest message id that `blacs_get` reports. Messages have none here.
const ID_MAX: c_int = 32_767;

pub(crate) fn pinfo() -> (c_int, c_int) {
    let job = library().job;
    (job.rank().0 as c_int, job.size() as c_int)
}

/// Returns the processes of a system handle, or of a context that stands for one.
pub(crate) fn processes(handle: c_int) -> Option<Arc<[Rank]>> {
    let library = library();
    match handle {
        ALL => Some(library.job.ranks().collect()),
        OF_GRIDS.. => lock(&library.system_handles).get((handle - OF_GRIDS) as usize).cloned(),
        _ => GRIDS.get(handle).map(|grid| grid.ranks.clone()),
    }
}

/// Makes the system handle of a grid.
fn handle_of(grid: &Grid) -> c_int {
    let (number, mut handles) = (grid.number(), lock(&library().system_handles));
    let at = number as usize;
    if handles.len() <= at {
        handles.resize_with(at + 1, || Arc::from([]));
    }
    handles[at] = grid.ranks.clone();
    OF_GRIDS + number
}

/// The setting of a grid that `what` names.
fn setting(grid: &Grid, what: c_int) -> Option<&AtomicI32> {
    let settings = &grid.settings;
    Some(match what {
        11 => &settings.broadcast_rings,
        12 => &settings.broadcast_branches,
        13 => &settings.combine_rings,
        14 => &settings.combine_branches,
        15 => &settings.repeatable,
        16 => &settings.coherent,
        _ => return None,
    })
}

/// `blacs_get`: returns the values of `what`, two for the range of message ids.
pub(crate) fn get(context: c_int, what: c_int) -> Vec<c_int> {
    match what {
        0 => vec![ALL],
        1 => vec![0, ID_MAX],
        2 => vec![0],
        10 => vec![with_grid(context, handle_of)],
        11..=16 => with_grid(context, |grid| {
            setting(grid, what).map(|value| value.load(Ordering::Relaxed)).into_iter().collect()
        }),
        _ => {
            warn(context, format_args!("Unknown WHAT ({what})"));
            Vec::new()
        }
    }
}

/// `blacs_set`.
pub(crate) fn set(context: c_int, what: c_int, value: c_int) {
    match what {
        1 => warn(context, "No need to set message ID range due to MPI communicator."),
        0 | 2 | 10 => warn(context, format_args!("WHAT {what} cannot be set")),
        11 | 13 if value == 0 => warn(context, format_args!("BlacsSet: the number of rings must not be 0")),
        12 | 14 if value <= 0 => {
            warn(context, format_args!("BlacsSet: the number of branches must be greater than 0"))
        }
        11..=16 => with_grid(context, |grid| {
            setting(grid, what).into_iter().for_each(|setting| setting.store(value, Ordering::Relaxed));
        }),
        _ => warn(context, format_args!("Unknown WHAT ({what})")),
    }
}

/// `blacs_exit`: leaves all grids and, unless the program goes on by itself, the job. Processes leave the job when all
/// have come, as after `MPI_Finalize`: the first that ends with a code other than 0 takes the others with it, which may
/// still have to print why.
pub(crate) fn exit(goes_on: bool) {
    let library = library();
    for grid in GRIDS.remove_all(&LAST) {
        let _ = crate::creation::leave(library, &grid); // fails only if the job is over
    }
    if !goes_on {
        let _ = library.job.barrier(); // fails if a process has left, for which there is no use in waiting
        if let Err(failure) = process_rank::end() {
            warn(-1, failure);
        }
    }
}

/// `blacs_abort`: ends all processes. The process that ends with a code other than 0 takes the others with it.
pub(crate) fn abort(context: c_int, code: c_int) -> ! {
    let (number, (row, column)) = match GRIDS.get(context) {
        Some(grid) => (pinfo().0, (grid.me.0 as c_int, grid.me.1 as c_int)),
        None => (process_rank::job().map_or(-1, |job| job.rank().0 as c_int), (-1, -1)),
    };
    let line = format!(
        "{{{row},{column}}}, pnum={number}, Contxt={context}, killed other procs, exiting with error #{code}.\n\n"
    );
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
    tasuki::bindings::end_process(code)
}

/// `blacs_freebuff`: there is nothing to free, since messages that wait belong to the library. Pushes them on.
pub(crate) fn free_buffers() {
    let _ = tasuki::message::check_send_buffer(library().job); // an error comes again from the next call
}
