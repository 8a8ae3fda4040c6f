//! Combines: sums, and elements of largest and smallest absolute value, with the places of these.
//!
//! Values are combined in one order, so that results are repeatable and coherent whatever the settings say. Places count
//! upwards from the destination, or from 0 if all processes get the result. At step k a process at a multiple of 2^(k+1)
//! combines its own values with those of the process 2^k behind it, whose values come second. Where all get the result
//! and their number is a power of two, both processes of a pair do that, with the same bits.
//!
//! Unsafe: matrices are pointers of the program, which it vouches for until the call has ended.
#![allow(unsafe_code)]

use crate::broadcast::topology;
use crate::element::Element;
use crate::grid::{Grid, Kind, Members, Scope};
use crate::library::{or_fail, with_grid};
use crate::matrix::{Form, Matrix};
use crate::topology::Topology;
use std::ffi::c_int;
use tasuki::Pod;
use tasuki::bindings::{BufferView, MessageBuffer, RevocableBuffer, TypedSlot};
use tasuki::bytemuck::{bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};

/// Where the result goes.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    pub(crate) row: c_int,
    pub(crate) column: c_int,
}

/// One combine.
struct Combine<'g> {
    grid: &'g Grid,
    members: Members<'g>,
    slot: TypedSlot,
    /// The place of the destination; `None`: all processes get the result.
    to: Option<usize>,
    /// The place of this process, counted from the destination.
    own: usize,
}

impl<'g> Combine<'g> {
    fn new<T: Pod>(grid: &'g Grid, scope: Scope, to: Option<Destination>) -> Combine<'g> {
        let members = grid.members(scope);
        let to = to.map(|to| members.place(to.row, to.column, "the destination"));
        let own = (members.own + members.size - to.unwrap_or(0)) % members.size;
        Combine { grid, members, slot: grid.slot::<T>(Kind::Combine(scope)), to, own }
    }

    fn rank(&self, place: usize) -> tasuki::Rank {
        self.members.rank((place + self.to.unwrap_or(0)) % self.members.size)
    }

    fn send<T: Pod>(&self, values: &[T], to: usize) {
        let sent = self.grid.context.send(cast_slice(values), self.rank(to), self.slot);
        or_fail(self.grid.number(), sent);
    }

    fn recv<T: Pod>(&self, values: &mut [T], from: usize) {
        let got = self.grid.context.recv(cast_slice_mut(values), self.rank(from), self.slot);
        or_fail(self.grid.number(), got);
    }

    /// Sends values to a process, and receives as many from it. The receive is posted first: two processes that both send
    /// first would find no receive, and their messages would be buffered.
    fn exchange<T: Pod>(&self, values: &[T], other: &mut [T], with: usize) {
        let (context, rank, slot) = (&self.grid.context, self.rank(with), self.slot);
        let (worker, into) = (context.worker(), BufferView::of_mut(cast_slice_mut(other)));
        let exchanged = RevocableBuffer::lend(into, &|| worker.pause(), |into| {
            let into = MessageBuffer::Unregistered(into.clone());
            let mut receive = context.begin_long_recv(into, rank, slot)?;
            context.send(cast_slice(values), rank, slot)?;
            receive.take(&mut [])
        });
        or_fail(self.grid.number(), exchanged);
    }

    /// Combines the values of all processes by `fold`, which gets the first and the second values. Returns true if this
    /// process has the result.
    fn run<T: Pod>(&self, values: &mut [T], fold: impl Fn(&mut [T], &[T])) -> bool {
        let (size, own) = (self.members.size, self.own);
        let mut other = vec![T::zeroed(); values.len()];
        let all_in_pairs = self.to.is_none() && size.is_power_of_two();
        let mut step = 1;
        while step < size {
            if all_in_pairs {
                let with = own ^ step;
                self.exchange(values, &mut other, with);
                if own & step == 0 {
                    fold(values, &other);
                } else {
                    fold(&mut other, values);
                    values.copy_from_slice(&other);
                }
            } else if own & step != 0 {
                self.send(values, own - step);
                break;
            } else if own + step < size {
                self.recv(&mut other, own + step);
                fold(values, &other);
            }
            step *= 2;
        }
        if self.to.is_none() && !all_in_pairs {
            let (before, behind) = Topology::Tree.neighbours(own, size);
            if own != 0 {
                self.recv(values, before);
            }
            behind.into_iter().for_each(|to| self.send(values, to));
        }
        self.to.is_none() || own == 0
    }
}

/// Returns the destination; `None` if either coordinate is -1, and all processes get the result.
fn destination((row, column): (c_int, c_int)) -> Option<Destination> {
    (row != -1 && column != -1).then_some(Destination { row, column })
}

/// `xgsum2d`.
///
/// # Safety
/// The elements of the matrix are there, and nobody else uses them meanwhile.
pub(crate) unsafe fn sum<T: Element>(
    context: c_int,
    (scope, letter): (u8, u8),
    shape: [c_int; 3],
    at: *mut T,
    to: (c_int, c_int),
) {
    with_grid(context, |grid| {
        topology(grid, letter); // which only says that there is one
        let combine = Combine::new::<T>(grid, grid.scope(scope), destination(to));
        let matrix = Matrix::new(context, at.cast_const(), shape, Form::All);
        // SAFETY: the caller promises it.
        let mut values = unsafe { matrix.packed() };
        let has_result = combine.run(&mut values, |first, second| {
            first.iter_mut().zip(second).for_each(|(first, &second)| *first = first.plus(second));
        });
        if has_result {
            // SAFETY: the caller promises it.
            unsafe { matrix.unpack(&values) };
        }
    });
}

/// Which elements an extreme prefers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extreme {
    Largest,
    Smallest,
}

impl Extreme {
    /// Returns true if the second element replaces the first.
    fn prefers<T: Element>(self, first: T, second: T) -> bool {
        match self {
            Extreme::Largest => second.size() > first.size(),
            Extreme::Smallest => second.size() < first.size(),
        }
    }
}

/// An element, and one whose first four bytes are the place of its process.
type Placed<T> = [T; 2];

fn placed<T: Element>(value: T, place: u32) -> Placed<T> {
    let mut pair = [value, T::zeroed()];
    bytes_of_mut(&mut pair[1])[..4].copy_from_slice(&place.to_ne_bytes());
    pair
}

fn place_of<T: Element>(pair: &Placed<T>) -> u32 {
    let mut place = [0; 4];
    place.copy_from_slice(&bytes_of(&pair[1])[..4]);
    u32::from_ne_bytes(place)
}

/// Where the coordinates of the processes go whose elements were taken: matrices of rows and of columns.
pub(crate) struct Places {
    pub(crate) rows: *mut c_int,
    pub(crate) columns: *mut c_int,
    /// Their leading dimension; -1 if nobody asks for them.
    pub(crate) lda: c_int,
}

/// `xgamx2d` and `xgamn2d`: for each element the one with the largest or smallest absolute value, with its sign. Of equal
/// ones, that of the process next to the destination, upwards, if places are asked for, otherwise the larger one.
///
/// # Safety
/// The elements of the matrices are there, and nobody else uses them meanwhile.
pub(crate) unsafe fn extreme<T: Element>(
    context: c_int,
    (scope, letter): (u8, u8),
    [m, n, lda]: [c_int; 3],
    at: *mut T,
    (extreme, places): (Extreme, Places),
    to: (c_int, c_int),
) {
    with_grid(context, |grid| {
        topology(grid, letter); // which only says that there is one
        let combine = Combine::new::<T>(grid, grid.scope(scope), destination(to));
        let matrix = Matrix::new(context, at.cast_const(), [m, n, lda], Form::All);
        // SAFETY: the caller promises it.
        let mut values = unsafe { matrix.packed() };
        if places.lda == -1 {
            let has_result = combine.run(&mut values, |first, second| {
                for (first, &second) in first.iter_mut().zip(second) {
                    let is_tie = first.size() == second.size() && second.sign() > first.sign();
                    if is_tie || extreme.prefers(*first, second) {
                        *first = second;
                    }
                }
            });
            if has_result {
                // SAFETY: the caller promises it.
                unsafe { matrix.unpack(&values) };
            }
            return;
        }
        let mut pairs: Vec<Placed<T>> =
            values.iter().map(|&value| placed(value, combine.own as u32)).collect();
        let has_result = combine.run(&mut pairs, |first, second| {
            for (first, second) in first.iter_mut().zip(second) {
                if extreme.prefers(first[0], second[0]) {
                    *first = *second;
                }
            }
        });
        if !has_result {
            return;
        }
        pairs.iter().zip(&mut values).for_each(|(pair, value)| *value = pair[0]);
        let coordinates = |pair: &Placed<T>| {
            let place = place_of(pair) as usize + combine.to.unwrap_or(0);
            combine.members.coordinates(place % combine.members.size)
        };
        let (rows, columns): (Vec<c_int>, Vec<c_int>) = pairs.iter().map(coordinates).unzip();
        let shape = [m, n, places.lda];
        // SAFETY: the caller promises it.
        unsafe {
            matrix.unpack(&values);
            Matrix::new(context, places.rows.cast_const(), shape, Form::All).unpack(&rows);
            Matrix::new(context, places.columns.cast_const(), shape, Form::All).unpack(&columns);
        }
    });
}

/// `blacs_barrier`: waits until all processes of a scope have called it.
pub(crate) fn barrier(grid: &Grid, scope: Scope) {
    Combine::new::<u8>(grid, scope, None).run(&mut [0_u8; 0], |_, _| {});
}
