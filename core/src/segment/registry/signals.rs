//! Allocates signals: symmetric ones, which have the same numbers on all ranks, from the low end of signal memory, and
//! private ones of this rank from the high end.

use super::{Cause, Registry, Result, SIGNALS_MAX};
use crate::base::error_hint::SIGNAL_MEMORY;

impl Registry {
    /// Creates a signal. The same sequence of calls gives the same numbers on every rank.
    pub fn signal(&self) -> Result<u32> {
        let mut state = self.state();
        if state.signals + state.private == SIGNALS_MAX {
            return Err(Cause::Full { what: SIGNAL_MEMORY, capacity: SIGNALS_MAX as usize }.into());
        }
        state.signals += 1;
        state.usage.signals = state.signals;
        Ok((state.signals - 1) as u32)
    }

    /// Allocates `count` consecutive private signals and returns the first number. The rank must
    /// send the numbers to the ranks that raise the signals, unless all ranks have allocated as
    /// many before. Private signals do not count in [`Usage::signals`](super::Usage::signals). They
    /// may have been raised for an earlier user who freed them.
    pub fn private_signals(&self, count: u32) -> Result<u32> {
        let freed = self.state().freed_signals.get_mut(&count).and_then(Vec::pop);
        freed.map_or_else(|| self.untouched_signals(count), Ok)
    }

    /// Like [`Registry::private_signals`], for signals whose counts are 0.
    pub fn untouched_signals(&self, count: u32) -> Result<u32> {
        let mut state = self.state();
        if let Some(first) = state.freed_untouched_signals.get_mut(&count).and_then(Vec::pop) {
            return Ok(first);
        }
        if state.signals + state.private + u64::from(count) > SIGNALS_MAX {
            return Err(Cause::Full { what: SIGNAL_MEMORY, capacity: SIGNALS_MAX as usize }.into());
        }
        state.private += u64::from(count);
        Ok((SIGNALS_MAX - state.private) as u32)
    }

    /// Frees signals that one call of [`Registry::private_signals`] allocated. The next call for as many gets them with
    /// their current counts. No rank may raise them or wait for them any more, and none may be poisoned.
    pub fn free_signals(&self, first: u32, count: u32) {
        self.state().freed_signals.entry(count).or_default().push(first);
    }

    /// Frees signals that one call of [`Registry::untouched_signals`] allocated, and whose counts are 0 again. No rank
    /// may raise them or wait for them any more, and none may be poisoned.
    pub fn free_untouched_signals(&self, first: u32, count: u32) {
        self.state().freed_untouched_signals.entry(count).or_default().push(first);
    }
}
