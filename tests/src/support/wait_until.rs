//! Waiting for a condition for which no call of the library waits, in two ways: with calls that
//! serve peers, or without any call.

use crate::exchange::is_simulated;
use std::thread;
use std::time::Duration;
use tasuki::{Job, Request, Result, Signal};

/// One step of a wait without any call that could serve a peer or make progress.
pub(crate) fn stay_away(job: &Job) {
    job.compute(Duration::from_micros(5));
}

/// Returns true if a helper thread or a simulated network card may act for this rank at any moment.
pub(crate) fn may_be_helped(job: &Job) -> bool {
    let is_wanted = match std::env::var("TASUKI_HELPER") {
        Ok(helper) => helper != "off",
        // Without the variable, a helper starts if there are more processors than ranks.
        Err(_) => thread::available_parallelism().is_ok_and(|processors| job.size() < processors.get()),
    };
    is_simulated(job) || is_wanted
}

/// A signal that nobody raises. A short wait for it serves the requests of peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle<'job>(Signal<'job>);

impl<'job> Idle<'job> {
    /// Collective, like all allocations of signals.
    pub(crate) fn new(job: &'job Job) -> Result<Idle<'job>> {
        job.signal().map(Idle)
    }

    /// Serves peers for about `limit`.
    pub(crate) fn serve(&self, limit: Duration) -> Result<()> {
        let raised = self.0.reaches(1).wait_timeout(limit)?;
        assert!(raised.is_none(), "a signal that nobody raises was raised");
        Ok(())
    }

    /// Serves peers until `done` returns true.
    pub(crate) fn until(&self, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
        while !done()? {
            self.serve(Duration::from_micros(10))?;
        }
        Ok(())
    }
}
