//! Where a rank's vertices were found from.

use bytemuck::{Pod, Zeroable};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A vertex is reached from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Visit {
    /// Its place at its owner's.
    pub place: u32,
    /// From where.
    pub from: u32,
}

/// Nobody.
const NOBODY: u32 = u32::MAX;

/// What handlers and the search of a rank share.
#[derive(Debug, Default)]
pub struct Found(Mutex<Vertices>);

/// Where each vertex of a rank was found from, and which were found on this level.
#[derive(Debug, Default)]
pub(super) struct Vertices {
    from: Vec<u32>,
    next: Vec<u32>,
}

impl Found {
    pub(super) fn vertices(&self) -> MutexGuard<'_, Vertices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vertices {
    /// Of so many vertices none is found.
    pub(super) fn begin(&mut self, count: usize) {
        self.from.clear();
        self.from.resize(count, NOBODY);
        self.next.clear();
    }

    /// Each that was not found before is searched on the next level. A place that is none is left alone.
    pub(super) fn visit(&mut self, visits: &[Visit]) {
        for &Visit { place, from } in visits {
            if let Some(place_from) = self.from.get_mut(place as usize)
                && *place_from == NOBODY
            {
                *place_from = from;
                self.next.push(place);
            }
        }
    }

    /// The places that were found since this was asked last.
    pub(super) fn take_next(&mut self, into: &mut Vec<u32>) {
        into.clear();
        std::mem::swap(&mut self.next, into);
    }

    /// Where the vertex at that place was found from.
    pub(super) fn from(&self, place: usize) -> Option<u32> {
        (self.from[place] != NOBODY).then_some(self.from[place])
    }
}
