//! What a thread that waits long has looked at: whether what it waits for can come at all.
//!
//! A model knows more of a call than its waits say: that other ranks are in another call, say, which only a look at all
//! of them tells. It registers a [`WaitProbe`], and a thread that is in such a call names it. A wait that has lasted a
//! while asks it now and then, and ends with its probe_error.

use crate::base::Cause;
use crate::engine::worker::Worker;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

/// Something to be asked while a call waits.
pub trait WaitProbe: Send + Sync + Debug {
    /// Why the call cannot end well.
    fn probe_error(&self) -> Option<Cause>;

    /// Whether it is asked as soon as a wait is a long one, though nothing happens: it has something to tell others
    /// then, who may be asleep until they hear of it, or has heard of what it complains of before. Always the same.
    fn is_urgent(&self) -> bool {
        false
    }
}

/// The part of a watch's number that says that it is urgent.
const URGENT: u32 = 1 << 31;

/// The wait_probes of a rank: numbers stand for them, from 1 on.
#[derive(Debug, Default)]
pub(in crate::engine) struct WaitProbes(RwLock<Vec<Option<Arc<dyn WaitProbe>>>>);

thread_local! {
    /// Which the thread has named; 0: none.
    static NAMED: Cell<u32> = const { Cell::new(0) };
}

/// Waits of this thread's ask that one from now on; 0: none.
#[inline]
pub fn set_wait_probe(number: u32) {
    NAMED.set(number);
}

/// Waits of this thread's ask that one, as long as the result lasts; then the one that they asked before.
pub(in crate::engine) fn scoped_wait_probe(number: u32) -> impl Drop {
    struct Before(u32);
    impl Drop for Before {
        fn drop(&mut self) {
            NAMED.set(self.0);
        }
    }
    Before(NAMED.replace(number))
}

impl WaitProbes {
    fn add(&self, watch: Arc<dyn WaitProbe>) -> u32 {
        let urgent = if watch.is_urgent() { URGENT } else { 0 };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        if free == all.len() {
            all.push(None);
        }
        all[free] = Some(watch);
        (free + 1) as u32 | urgent
    }

    fn remove(&self, number: u32) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let place = (number & !URGENT).checked_sub(1).and_then(|at| all.get_mut(at as usize));
        let removed = place.and_then(Option::take);
        drop(all);
        drop(removed); // what it holds is not dropped under the lock
    }

    fn get(&self, number: u32) -> Option<Arc<dyn WaitProbe>> {
        let at = (number & !URGENT).checked_sub(1)?;
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(at as usize).cloned().flatten()
    }
}

impl Worker {
    /// Registers a watch, until it is removed: its number, which others may have had before.
    pub fn add_wait_probe(&self, watch: Arc<dyn WaitProbe>) -> u32 {
        self.wait_probes().add(watch)
    }

    /// No call names it any more.
    pub fn remove_wait_probe(&self, watch: u32) {
        self.wait_probes().remove(watch);
    }

    /// Whether the watch that this thread has named is to be asked as soon as a wait is long.
    #[inline]
    pub(in crate::engine) fn wait_probe_is_urgent(&self) -> bool {
        NAMED.get() & URGENT != 0
    }

    /// What the watch complains about that this thread has named.
    pub(in crate::engine) fn probe_error(&self) -> Option<Cause> {
        self.probe_error_of(NAMED.get())
    }

    /// What the watch of that number complains about.
    pub fn probe_error_of(&self, watch: u32) -> Option<Cause> {
        self.wait_probes().get(watch)?.probe_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Complains(bool);

    impl WaitProbe for Complains {
        fn probe_error(&self) -> Option<Cause> {
            Some(Cause::Argument(self.0.to_string()))
        }

        fn is_urgent(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn a_number_is_given_again_when_its_watch_is_gone() {
        let wait_probes = WaitProbes::default();
        let [first, second] = [true, false].map(|urgent| wait_probes.add(Arc::new(Complains(urgent))));
        assert_eq!((first & URGENT, second & URGENT), (URGENT, 0));
        wait_probes.remove(first);
        wait_probes.remove(0);
        assert!(wait_probes.get(first).is_none() && wait_probes.get(0).is_none());
        let third = wait_probes.add(Arc::new(Complains(false)));
        assert_eq!((third, second), (1, 2));
        assert!([second, third].map(|number| wait_probes.get(number).is_some()) == [true, true]);
    }
}
