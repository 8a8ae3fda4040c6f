//! Probes that long waits call to find out whether they can end at all.
//!
//! A crate above this one knows more of a call than its waits show. For example, only a check of
//! all ranks shows that they are in different collective calls. The crate registers a
//! [`WaitProbe`], and a thread in such a call selects it. A wait that has become long calls the
//! probe from time to time, and ends with its error.

use crate::base::Cause;
use crate::engine::wait::deadline::{CallScope, in_one_call, set_in_call};
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

/// A check that is called while a call waits for long.
pub trait WaitProbe: Send + Sync + Debug {
    /// Returns why the call cannot succeed. `about` is what the thread has selected the probe with
    /// ([`scoped_wait_probe_about`]).
    fn probe_error(&self, about: u32) -> Option<Cause>;

    /// Returns why the call has failed, if another rank has reported that by raising this rank's
    /// [alarm](super::alarm). Called as soon as the alarm was raised.
    fn failure(&self, _about: u32) -> Option<Cause> {
        None
    }

    /// Called when a wait ends that has asked the probe.
    fn wait_ended(&self) {}

    /// Returns true if the probe must be called as soon as a wait is long, though nothing happens:
    /// it then informs others, which may be asleep, or it has been informed before. Constant.
    fn is_urgent(&self) -> bool {
        false
    }
}

/// The bit of a probe's number that marks it as urgent.
const URGENT: u32 = 1 << 31;

/// The probes of a rank, by number, from 1 on.
#[derive(Debug, Default)]
pub struct WaitProbes(RwLock<Vec<Option<Arc<dyn WaitProbe>>>>);

thread_local! {
    /// The number of the probe that this thread has selected, or 0; and in the high half what it is asked about.
    static CURRENT_PROBE: Cell<u64> = const { Cell::new(0) };
}

/// Selects the probe that waits of this thread call from now on; 0: none. Waits with a probe belong to one call.
#[inline]
pub fn set_wait_probe(number: u32) {
    CURRENT_PROBE.set(number.into());
    set_in_call(number != 0);
}

/// Selects a probe for this thread until the result is dropped; then the previous one is selected again. Waits until
/// then belong to one call. The probe is asked about the same as the previous one.
pub fn scoped_wait_probe(number: u32) -> impl Drop {
    scoped_wait_probe_about(number, about(CURRENT_PROBE.get()))
}

/// Like [`scoped_wait_probe`], for a wait for one of several things that the probe knows: it is asked `about` that one.
pub fn scoped_wait_probe_about(number: u32, about: u32) -> impl Drop {
    struct RestoreOnDrop(u64, #[expect(dead_code, reason = "it ends the call when it is dropped")] CallScope);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            CURRENT_PROBE.set(self.0);
        }
    }
    let selected = u64::from(about) << 32 | u64::from(number);
    RestoreOnDrop(CURRENT_PROBE.replace(selected), in_one_call())
}

fn about(selected: u64) -> u32 {
    (selected >> 32) as u32
}

/// Returns true if the probe that this thread has selected is urgent.
#[inline]
pub(super) fn wait_probe_is_urgent() -> bool {
    CURRENT_PROBE.get() as u32 & URGENT != 0
}

impl WaitProbes {
    /// Registers a probe and returns its number. Numbers are used again after removal.
    pub fn add(&self, probe: Arc<dyn WaitProbe>) -> u32 {
        let urgent = if probe.is_urgent() { URGENT } else { 0 };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        if free == all.len() {
            all.push(None);
        }
        all[free] = Some(probe);
        (free + 1) as u32 | urgent
    }

    /// Removes a probe that no call selects any more.
    pub fn remove(&self, number: u32) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let place = (number & !URGENT).checked_sub(1).and_then(|at| all.get_mut(at as usize));
        let removed = place.and_then(Option::take);
        drop(all);
        drop(removed); // not under the lock, because a destructor may take it
    }

    fn get(&self, number: u32) -> Option<Arc<dyn WaitProbe>> {
        let at = (number & !URGENT).checked_sub(1)?;
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(at as usize).cloned().flatten()
    }

    /// Returns the error of the probe of that number, for a thread that does not wait: it is asked about `u32::MAX`.
    pub fn error_of(&self, number: u32) -> Option<Cause> {
        self.get(number)?.probe_error(u32::MAX)
    }

    /// Returns the error of the probe that this thread has selected.
    pub(super) fn error(&self) -> Option<Cause> {
        let selected = CURRENT_PROBE.get();
        self.get(selected as u32)?.probe_error(about(selected))
    }

    /// Returns the failure that was reported to the probe that this thread has selected.
    pub(super) fn failure(&self) -> Option<Cause> {
        let selected = CURRENT_PROBE.get();
        self.get(selected as u32)?.failure(about(selected))
    }

    /// Tells the probe that this thread has selected that a wait has ended which has asked it.
    pub(super) fn wait_ended(&self) {
        self.get(CURRENT_PROBE.get() as u32).into_iter().for_each(|probe| probe.wait_ended());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct TestProbe(bool);

    impl WaitProbe for TestProbe {
        fn probe_error(&self, _about: u32) -> Option<Cause> {
            Some(Cause::Argument(self.0.to_string()))
        }

        fn is_urgent(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn a_number_is_given_again_when_its_watch_is_gone() {
        let wait_probes = WaitProbes::default();
        let [first, second] = [true, false].map(|urgent| wait_probes.add(Arc::new(TestProbe(urgent))));
        assert_eq!((first & URGENT, second & URGENT), (URGENT, 0));
        wait_probes.remove(first);
        wait_probes.remove(0);
        assert!(wait_probes.get(first).is_none() && wait_probes.get(0).is_none());
        let third = wait_probes.add(Arc::new(TestProbe(false)));
        assert_eq!((third, second), (1, 2));
        assert!([second, third].map(|number| wait_probes.get(number).is_some()) == [true, true]);
    }
}
