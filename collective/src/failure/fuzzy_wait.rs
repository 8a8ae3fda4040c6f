//! Finds members that wait in a fuzzy barrier while others are in a blocking call of the communicator instead.
//!
//! Threads of a rank may start fuzzy barriers at the same time as its other calls, so these have no place in the call log.
//! But a member that waits in an instance waits for all others, and a member in a blocking call that the first one has
//! not made waits for that one. A member that waits publishes a word: the instance, and how many calls it had made. A
//! member that has waited long in a blocking call reads the words of the others. It makes the communicator fail if one
//! of them waits for an instance that this member has not started, and has not made this member's call. The failure
//! ends the wait of that member in turn.
//!
//! Each word is written by its member and read by others at any time. It orders no other memory accesses. If several
//! threads of a member wait, the word shows one of them.

use crate::failure::call_log::CallLog;
use crate::failure::member::FUZZY;
use crate::failure::monitor::FailureMonitor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasuki_core::base::Cause;
use tasuki_core::fabric::{DirectCell, SignalCell};

/// The fuzzy barriers of a member.
#[derive(Debug)]
pub(super) struct FuzzyWaits {
    /// The word that others read. None: they cannot.
    word: Option<DirectCell>,
    /// Number of instances that the member has started.
    started: Arc<AtomicU64>,
}

/// A wait whose word is published.
pub(crate) struct PublishedWait<'m>(&'m FuzzyWaits);

impl FuzzyWaits {
    pub(super) fn new(word: SignalCell) -> FuzzyWaits {
        let word = if let SignalCell::Direct(cell) = word { Some(cell) } else { None };
        FuzzyWaits { word, started: Arc::default() }
    }

    fn publish(&self, word: u64) {
        if let Some(cell) = self.word {
            cell.counter().store(word, Ordering::Relaxed);
        }
    }
}

impl Drop for PublishedWait<'_> {
    fn drop(&mut self) {
        self.0.publish(0);
    }
}

fn is_ahead(ahead: u32, of: u32) -> bool {
    ahead.wrapping_sub(of) as i32 > 0
}

impl FailureMonitor {
    /// Returns the number of fuzzy barriers that this member has started, which their owner counts.
    pub(crate) fn fuzzy_started(&self) -> Arc<AtomicU64> {
        self.fuzzy_waits.started.clone()
    }

    /// Publishes that this member waits for an instance.
    #[cold]
    pub(crate) fn publish_fuzzy_wait(&self, instance: u64) -> PublishedWait<'_> {
        let calls = self.opened_log().map_or(0, CallLog::calls);
        self.fuzzy_waits.publish(instance << 32 | calls & u64::from(u32::MAX));
        PublishedWait(&self.fuzzy_waits)
    }

    /// Returns an error if a member waits in a fuzzy barrier that this one has not started, instead of making this
    /// member's blocking call.
    pub(super) fn find_fuzzy_wait(&self, log: &CallLog) -> Option<Cause> {
        if !self.is_in_call() {
            return None;
        }
        let (started, number) = (self.fuzzy_waits.started.load(Ordering::Relaxed), self.blocking_call());
        let mut others = (0..self.members.len()).filter(|&member| member != self.me);
        let waiting = others.find(|&member| {
            let word = self.cell(member, FUZZY).map_or(0, |cell| cell.counter().load(Ordering::Relaxed));
            word != 0 && is_ahead((word >> 32) as u32, started as u32) && is_ahead(number as u32, word as u32)
        })?;
        let text = format!(
            "member {waiting} waits in fuzzy_barrier(), which this one has not started, while this one is in {}: \
             members make the same calls in the same order",
            log.latest()
        );
        Some(Cause::mismatch(Some(waiting), text))
    }
}
