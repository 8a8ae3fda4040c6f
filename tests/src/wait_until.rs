//! Waiting for something that no call waits for, in two ways: serving peers meanwhile, or making no call at all.

use crate::exchange::is_simulated;
use std::thread;
use std::time::Duration;
use tasuki::{Job, Result, Signal};

/// One step of a wait that makes no call which could serve a peer or move an operation on.
pub(crate) fn stay_away(job: &Job) {
    job.compute(Duration::from_micros(5));
}

/// Whether a helper, or a card, may do something for this rank at any moment.
pub(crate) fn may_be_helped(job: &Job) -> bool {
    let is_wanted = match std::env::var("TASUKI_HELPER") {
        Ok(helper) => helper != "off",
        // By itself one comes where there are more processors than ranks.
        Err(_) => thread::available_parallelism().is_ok_and(|processors| job.size() < processors.get()),
    };
    is_simulated(job) || is_wanted
}

/// A signal that nobody raises: waiting for it for a moment serves whoever asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle<'job>(Signal<'job>);

impl<'job> Idle<'job> {
    /// CollectiveRequest, like all signals.
    pub(crate) fn new(job: &'job Job) -> Result<Idle<'job>> {
        job.signal().map(Idle)
    }

    /// Serves peers for about `limit`.
    pub(crate) fn serve(&self, limit: Duration) -> Result<()> {
        match self.0.wait_timeout(1, limit) {
            Err(error) if error.is_timeout() => Ok(()),
            Err(error) => Err(error),
            Ok(()) => panic!("a signal that nobody raises was raised"),
        }
    }

    /// Serves peers until `done` says so.
    pub(crate) fn until(&self, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
        while !done()? {
            self.serve(Duration::from_micros(10))?;
        }
        Ok(())
    }
}
