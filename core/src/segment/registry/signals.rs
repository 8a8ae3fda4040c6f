//! Signals: numbers that all ranks give out alike, from below, and those that are a rank's alone, from above.

use super::{Cause, Registry, Result, SIGNALS_MAX};
use crate::base::hint::SIGNAL_MEMORY;

impl Registry {
    /// Makes a signal; the same sequence of calls gives the same numbers on every rank.
    pub fn signal(&self) -> Result<u32> {
        let mut books = self.books();
        if books.signals + books.private == SIGNALS_MAX {
            return Err(Cause::Full { what: SIGNAL_MEMORY, capacity: SIGNALS_MAX as usize }.into());
        }
        books.signals += 1;
        books.usage.signals = books.signals;
        Ok((books.signals - 1) as u32)
    }

    /// Makes signals, one behind the other, whose numbers are this rank's alone: it must tell them to who raises them,
    /// unless all ranks have made as many before. The first of them. They do not count among the signals in use. Some
    /// may have been raised for others, who gave them back.
    pub fn private_signals(&self, count: u32) -> Result<u32> {
        let given_back = self.books().given_back.get_mut(&count).and_then(Vec::pop);
        given_back.map_or_else(|| self.untouched_signals(count), Ok)
    }

    /// The same of signals that nobody has ever raised.
    pub fn untouched_signals(&self, count: u32) -> Result<u32> {
        let mut books = self.books();
        if books.signals + books.private + u64::from(count) > SIGNALS_MAX {
            return Err(Cause::Full { what: SIGNAL_MEMORY, capacity: SIGNALS_MAX as usize }.into());
        }
        books.private += u64::from(count);
        Ok((SIGNALS_MAX - books.private) as u32)
    }

    /// Gives back signals that [`Registry::private_signals`] made, as many as it did: the next who wants so many gets
    /// them as they are. Nobody raises them or waits for them any more, and none is poisoned.
    pub fn give_back_signals(&self, first: u32, count: u32) {
        self.books().given_back.entry(count).or_default().push(first);
    }
}
