//! The parents of a rank's vertices in the search tree.

use bytemuck::{Pod, Zeroable};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A vertex that was reached from another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Visit {
    /// The index of the vertex on its owner.
    pub place: u32,
    /// The number of the vertex from which it was reached.
    pub from: u32,
}

/// Marks a vertex that has not been reached.
const NO_PARENT: u32 = u32::MAX;

/// The state that the handlers and the search of a rank share.
#[derive(Debug, Default)]
pub struct Parents(Mutex<ParentsState>);

/// The parent of each vertex of a rank, and the vertices that were reached on this level.
#[derive(Debug, Default)]
pub(super) struct ParentsState {
    from: Vec<u32>,
    next: Vec<u32>,
}

impl Parents {
    pub(super) fn lock(&self) -> MutexGuard<'_, ParentsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParentsState {
    /// Resets the state to `count` vertices, none of which has been reached.
    pub(super) fn begin(&mut self, count: usize) {
        self.from.clear();
        self.from.resize(count, NO_PARENT);
        self.next.clear();
    }

    /// Sets the parents of vertices that are reached for the first time; they are searched on the next level. Indices
    /// out of range are ignored.
    pub(super) fn visit(&mut self, visits: &[Visit]) {
        for &Visit { place, from } in visits {
            if let Some(place_from) = self.from.get_mut(place as usize)
                && *place_from == NO_PARENT
            {
                *place_from = from;
                self.next.push(place);
            }
        }
    }

    /// Moves the indices that were reached since the last call into `into`.
    pub(super) fn take_next(&mut self, into: &mut Vec<u32>) {
        into.clear();
        std::mem::swap(&mut self.next, into);
    }

    /// The parent of the vertex with that index.
    pub(super) fn from(&self, place: usize) -> Option<u32> {
        (self.from[place] != NO_PARENT).then_some(self.from[place])
    }
}
