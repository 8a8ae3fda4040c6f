//! A hint of a rank that another one can use its processor now: see `step_wait.rs`.

use crate::base::sync::{AtomicBool, Ordering};

/// Set when a call of this rank has ended by providing data; cleared by its next wait on a shared processor. It is
/// only a hint: if several threads change it at the same time, nothing is lost.
#[derive(Debug, Default)]
pub(in crate::engine) struct YieldHint(AtomicBool);

impl YieldHint {
    #[inline(always)]
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn take(&self) -> bool {
        let was_set = self.0.load(Ordering::Relaxed);
        self.0.store(false, Ordering::Relaxed);
        was_set
    }
}
