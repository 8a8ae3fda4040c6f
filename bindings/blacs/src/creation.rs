//! How a grid is made: by its processes alone.
//!
//! The first process of the grid, the one at row 0 and column 0, chooses a number that none of its living grids has, and
//! sends it to the others. It and the number name the message context of the grid. A process that leaves the grid adds 1
//! to a word of the first process, which uses the number again when all have left. So making and leaving grids takes a
//! short message and an atomic operation for each process, and no memory after the first time.
//!
//! The messages that make grids are not mixed up: the processes of two grids that share a first process and another one
//! make them in the same order on both, and messages of a pair arrive in order.

use crate::grid::{Grid, Settings};
use crate::library::{CREATED_MAX, Library, lock};
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tasuki::bindings::TypedSlot;
use tasuki::message::check_send_buffer;
use tasuki::{GlobalPtr, Rank};

/// The pause between two looks for a grid that all have left.
const PAUSE: Duration = Duration::from_micros(50);
/// The slot of the messages that make grids.
const CREATE: u32 = 0;

/// What the first process of a grid sends to the others: its number for the grid, the address of its words, and the
/// shape of the grid.
type Made = [u64; 4];

/// Makes the grid of these ranks. This rank is one of them. Error: a text.
pub(crate) fn create(
    library: &Library,
    ranks: Vec<Rank>,
    (rows, columns): (usize, usize),
) -> Result<Grid, String> {
    let own = library.job.rank();
    let place = ranks.iter().position(|&rank| rank == own).ok_or("this process is not in the grid")?;
    let first = ranks[0];
    let slot = TypedSlot::of::<u64>(CREATE);
    let shape = [rows as u64, columns as u64];
    let made: Made = if own == first {
        let number = take_number(library, ranks.len())?;
        let made = [number, library.exits.pointer().address().bits(), shape[0], shape[1]];
        for &rank in &ranks[1..] {
            library.creation.send(bytes_of(&made), rank, slot).map_err(|error| error.to_string())?;
        }
        made
    } else {
        let mut made = [0; 4];
        library.creation.recv(bytes_of_mut(&mut made), first, slot).map_err(|error| error.to_string())?;
        made
    };
    if made[2..] != shape {
        return Err(format!(
            "process 0 of the grid makes one of {} x {}, and this process one of {rows} x {columns}",
            made[2], made[3]
        ));
    }
    let words = GlobalPtr::<u64>::new(tasuki::onesided::GlobalAddress::from_bits(made[1]));
    Ok(Grid {
        number: AtomicI32::new(-1),
        context: library.context(first, made[0]),
        ranks: ranks.into(),
        rows,
        columns,
        me: (place / columns, place % columns),
        exits: words.at(made[0] as usize),
        settings: Settings::default(),
    })
}

fn bytes_of(words: &Made) -> &[u8] {
    tasuki::bytemuck::cast_slice(words)
}

fn bytes_of_mut(words: &mut Made) -> &mut [u8] {
    tasuki::bytemuck::cast_slice_mut(words)
}

/// Takes a number for a grid of so many processes. If all are taken by grids that this process has left and others have
/// not, it waits for these: it may be far ahead of them.
fn take_number(library: &Library, processes: usize) -> Result<u64, String> {
    let text = |error: tasuki::Error| error.to_string();
    loop {
        if library.live.load(Ordering::Relaxed) >= CREATED_MAX {
            return Err(format!(
                "process {} is the first of {CREATED_MAX} grids at a time",
                library.job.rank()
            ));
        }
        let mut created = lock(&library.created);
        for (number, of) in created.iter_mut().enumerate() {
            if *of == 0 || library.exits.get(number).map_err(text)? == *of {
                library.exits.set(number, 0).map_err(text)?;
                *of = processes as u64;
                library.live.fetch_add(1, Ordering::Relaxed);
                return Ok(number as u64);
            }
        }
        drop(created);
        check_send_buffer(library.job).map_err(text)?; // the others may wait for messages that make grids
        std::thread::sleep(PAUSE);
    }
}

/// Leaves a grid.
pub(crate) fn leave(library: &Library, grid: &Grid) -> Result<(), tasuki::Error> {
    if grid.ranks[0] == library.job.rank() {
        library.live.fetch_sub(1, Ordering::Relaxed);
    }
    library.job.fetch_add(grid.exits, 1).map(drop)
}

/// The ranks of `blacs_gridinit`, in the order of the grid.
pub(crate) fn in_order(all: &[Rank], (rows, columns): (usize, usize), by_columns: bool) -> Vec<Rank> {
    let at = |place: usize| match by_columns {
        true => all[place % columns * rows + place / columns],
        false => all[place],
    };
    (0..rows * columns).map(at).collect()
}

/// The ranks of `blacs_gridmap`, in the order of the grid. Error: the number of a process that is not there.
pub(crate) fn mapped(
    all: &[Rank],
    (rows, columns): (usize, usize),
    entry: impl Fn(usize, usize) -> c_int,
) -> Result<Vec<Rank>, c_int> {
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let rank = |(row, column)| {
        let number = entry(row, column);
        usize::try_from(number).ok().and_then(|number| all.get(number).copied()).ok_or(number)
    };
    places.map(rank).collect()
}
