//! Signals that are used again: those of Tasuki are never freed.

use crate::status::Failure;
use std::sync::{Mutex, PoisonError};
use tasuki::onesided::{RemoteSignal, Trigger};
use tasuki::{Job, Signal};

/// A signal of this rank, which counts from 0.
pub(super) struct CountedSignal {
    signal: Signal<'static>,
    /// The value that counts as 0.
    first: u64,
}

impl CountedSignal {
    pub(super) fn value(&self) -> u64 {
        self.signal.value().wrapping_sub(self.first)
    }

    /// The moment when it has counted that.
    pub(super) fn reaches(&self, count: u64) -> Trigger<'static> {
        self.signal.reaches(self.first.wrapping_add(count))
    }

    /// The signal, for those who raise it.
    pub(super) fn remote(&self, job: &Job) -> RemoteSignal {
        self.signal.on(job.rank())
    }
}

/// Signals that nobody uses at present.
#[derive(Default)]
pub(super) struct FreeSignals(Mutex<Vec<Signal<'static>>>);

impl FreeSignals {
    /// Returns a signal that has counted nothing.
    pub(super) fn take(&self, job: &'static Job) -> Result<CountedSignal, Failure> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let signal = free.map_or_else(|| job.signal(), Ok)?;
        Ok(CountedSignal { signal, first: signal.value() })
    }

    /// Takes back a signal that nobody will raise any more, and that is not poisoned.
    pub(super) fn put_back(&self, signal: CountedSignal) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(signal.signal);
    }
}
