//! A grid of processes: its ranks, scopes and settings.

use crate::library::fail;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use tasuki::bindings::{Context, TypedSlot};
use tasuki::{GlobalPtr, Pod, Rank};

/// What the messages of a slot are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    PointToPoint,
    /// Of broadcasts in a scope.
    Broadcast(Scope),
    /// Of combines in a scope.
    Combine(Scope),
}

/// The processes that take part in a broadcast or combine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    Row,
    Column,
    All,
}

impl Scope {
    /// Returns the scope of a letter, in any case; `None` if there is none of that name.
    pub(crate) fn of(letter: u8) -> Option<Scope> {
        match letter.to_ascii_lowercase() {
            b'r' => Some(Scope::Row),
            b'c' => Some(Scope::Column),
            b'a' => Some(Scope::All),
            _ => None,
        }
    }
}

/// A grid, as one of its processes has it.
pub struct Grid {
    /// The number of the context.
    pub(crate) number: AtomicI32,
    pub(crate) context: Arc<Context>,
    /// The rank at row r and column c is at r * columns + c.
    pub(crate) ranks: Arc<[Rank]>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The row and the column of this process.
    pub(crate) me: (usize, usize),
    /// Where the processes that leave are counted.
    pub(crate) exits: GlobalPtr<u64>,
    pub(crate) settings: Settings,
}

/// What `blacs_set` changes.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) broadcast_rings: AtomicI32,
    pub(crate) broadcast_branches: AtomicI32,
    pub(crate) combine_rings: AtomicI32,
    pub(crate) combine_branches: AtomicI32,
    pub(crate) repeatable: AtomicI32,
    pub(crate) coherent: AtomicI32,
}

impl Default for Settings {
    fn default() -> Settings {
        let one = || AtomicI32::new(1);
        Settings {
            broadcast_rings: one(),
            broadcast_branches: one(),
            combine_rings: one(),
            combine_branches: one(),
            repeatable: AtomicI32::new(0),
            coherent: AtomicI32::new(0),
        }
    }
}

/// The processes of a scope in their order, and which of them this one is.
pub(crate) struct Members<'g> {
    grid: &'g Grid,
    scope: Scope,
    pub(crate) size: usize,
    pub(crate) own: usize,
}

impl Grid {
    /// The number of the context, for messages.
    pub(crate) fn number(&self) -> c_int {
        self.number.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn rank_at(&self, row: usize, column: usize) -> Rank {
        self.ranks[row * self.columns + column]
    }

    /// Returns a process by its coordinates; ends the job if there is none there.
    pub(crate) fn process(&self, row: c_int, column: c_int, what: &str) -> Rank {
        match (usize::try_from(row), usize::try_from(column)) {
            (Ok(row), Ok(column)) if row < self.rows && column < self.columns => self.rank_at(row, column),
            _ => {
                let (rows, columns) = (self.rows, self.columns);
                fail(
                    self.number(),
                    format_args!("{what} {{{row},{column}}} is not in the grid of {rows} x {columns}"),
                )
            }
        }
    }

    /// Returns the slot of messages of a kind, for elements of that type.
    #[inline]
    pub(crate) fn slot<T: Pod>(&self, kind: Kind) -> TypedSlot {
        let number = match kind {
            Kind::PointToPoint => 0,
            Kind::Broadcast(scope) => 1 + scope as u32,
            Kind::Combine(scope) => 4 + scope as u32,
        };
        TypedSlot::of::<T>(number)
    }

    /// Returns the processes of a scope.
    pub(crate) fn members(&self, scope: Scope) -> Members<'_> {
        let (row, column) = self.me;
        let (size, own) = match scope {
            Scope::Row => (self.columns, column),
            Scope::Column => (self.rows, row),
            Scope::All => (self.ranks.len(), row * self.columns + column),
        };
        Members { grid: self, scope, size, own }
    }

    /// Returns the scope of a letter; ends the job if there is none.
    pub(crate) fn scope(&self, letter: u8) -> Scope {
        match Scope::of(letter) {
            Some(scope) => scope,
            None => fail(self.number(), format_args!("Unknown scope '{}'", char::from(letter))),
        }
    }
}

impl Members<'_> {
    pub(crate) fn rank(&self, place: usize) -> Rank {
        let (row, column) = self.grid.me;
        match self.scope {
            Scope::Row => self.grid.rank_at(row, place),
            Scope::Column => self.grid.rank_at(place, column),
            Scope::All => self.grid.ranks[place],
        }
    }

    /// Returns the place of coordinates, of which a row or column scope uses one; ends the job if there is none there.
    pub(crate) fn place(&self, row: c_int, column: c_int, what: &str) -> usize {
        let within =
            |number: c_int, size: usize| usize::try_from(number).ok().filter(|&number| number < size);
        let grid = self.grid;
        let place = match self.scope {
            Scope::Row => within(column, grid.columns),
            Scope::Column => within(row, grid.rows),
            Scope::All => within(row, grid.rows)
                .and_then(|row| Some(row * grid.columns + within(column, grid.columns)?)),
        };
        place.unwrap_or_else(|| {
            let (rows, columns) = (grid.rows, grid.columns);
            fail(
                grid.number(),
                format_args!("{what} {{{row},{column}}} is not in the grid of {rows} x {columns}"),
            )
        })
    }

    /// Returns the coordinates of a place.
    pub(crate) fn coordinates(&self, place: usize) -> (c_int, c_int) {
        let (row, column) = self.grid.me;
        let (row, column) = match self.scope {
            Scope::Row => (row, place),
            Scope::Column => (place, column),
            Scope::All => (place / self.grid.columns, place % self.grid.columns),
        };
        (row as c_int, column as c_int)
    }
}
