//! The collectives of a rank, by their numbers, and the handles of their starts.

use super::collective::{Collective, Data};
use super::collective_setup::Kind;
use super::ongoing::{Advance, Ongoing};
use super::state::state;
use crate::status::Failure;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use tasuki::Job;

/// Marks the handles of collectives among those of accesses.
const IS_COLLECTIVE: u64 = 1 << 63;
/// The bits of a handle that count starts.
const START_BITS: u32 = 32;
/// The most collectives that a process creates: a handle has so many bits for their numbers, and is not that of all.
const COLLECTIVES_MAX: u64 = (1 << (63 - START_BITS)) - 2;

/// The collectives of this rank.
#[derive(Default)]
pub(super) struct Collectives {
    all: BTreeMap<u64, Collective>,
    /// The number of the last one.
    last: u64,
}

/// Returns true if a handle is that of a start of a collective.
pub(super) fn is_of_collective(handle: u64) -> bool {
    handle & IS_COLLECTIVE != 0 && handle < u64::MAX - 1
}

impl Collectives {
    /// Adds a collective. Returns its number.
    pub(super) fn add(&mut self, collective: Collective) -> Result<usize, Failure> {
        if self.last == COLLECTIVES_MAX {
            return Err(Failure::full(format!("{COLLECTIVES_MAX} collectives were created")));
        }
        self.last += 1;
        self.all.insert(self.last, collective);
        Ok(self.last as usize)
    }

    fn get(&mut self, number: usize, kind: Kind) -> Result<&mut Collective, Failure> {
        let found = self.all.get_mut(&(number as u64)).filter(|found| found.kind == kind);
        found.ok_or_else(|| Failure::misuse("there is no such collective, or it was freed"))
    }

    /// Starts a collective. Returns a handle.
    pub(super) fn start(&mut self, number: usize, kind: Kind, data: Data) -> Result<u64, Failure> {
        let start = self.get(number, kind)?.start(data)?;
        Ok(IS_COLLECTIVE | (number as u64) << START_BITS | u64::from(start as u32))
    }

    /// Returns `None` as long as a start has not ended. A collective that was freed has ended.
    pub(super) fn outcome(&self, handle: u64) -> Option<Result<(), Failure>> {
        let number = (handle & !IS_COLLECTIVE) >> START_BITS;
        let Some(collective) = self.all.get(&number) else { return Some(Ok(())) };
        collective.outcome_of(handle as u32)
    }

    /// Returns `None` as long as a start of any collective has not ended.
    pub(super) fn outcome_of_all(&self) -> Option<Result<(), Failure>> {
        self.all.values().try_fold(Ok(()), |outcome, collective| Some(outcome.and(collective.outcome()?)))
    }

    /// Takes a collective out when its starts have ended. Returns `None` before that.
    pub(super) fn take_idle(&mut self, number: usize, kind: Kind) -> Option<Result<Collective, Failure>> {
        match self.get(number, kind) {
            Err(failure) => return Some(Err(failure)),
            Ok(collective) => collective.outcome()?.unwrap_or_default(), // its free returns a failure
        }
        self.all.remove(&(number as u64)).map(Ok)
    }
}

impl Advance for Collectives {
    fn advance(&mut self, waker: &Waker) -> bool {
        let mut has_ended = false;
        for collective in self.all.values_mut() {
            has_ended |= collective.advance(waker);
        }
        has_ended
    }
}

static COLLECTIVES: OnceLock<Arc<Ongoing<Collectives>>> = OnceLock::new();

/// Makes the rank's set of collectives, which is empty.
pub(super) fn begin(job: &'static Job) -> Result<(), Failure> {
    let _ = COLLECTIVES.set(Ongoing::new(job, Collectives::default())?); // a rank begins once
    Ok(())
}

/// Drops all collectives.
pub(super) fn end_all() {
    COLLECTIVES.get().into_iter().for_each(|collectives| collectives.with(|all| all.all.clear()));
}

/// Returns the collectives. Failure: ACP does not run.
pub(super) fn collectives() -> Result<&'static Arc<Ongoing<Collectives>>, Failure> {
    state()?;
    COLLECTIVES.get().ok_or_else(|| Failure::not_running("acp_init has failed"))
}
