//! Collective calls of the job, such as `job.barrier()`. They go by other means, beside the calls of the world, whose
//! members find out if others are in a call of the job instead
//! ([`published_wait`](crate::failure::published_wait)).

use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::Lane;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tasuki_core::base::Cause;
use tasuki_core::engine::{WaitProbe, Worker, scoped_wait_probe_about};

/// A collective call of the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobCall {
    /// A barrier.
    Barrier,
    /// An allocation, which consists of several such calls.
    Alloc,
}

impl JobCall {
    pub(crate) fn name(self) -> &'static str {
        match self {
            JobCall::Barrier => "job.barrier",
            JobCall::Alloc => "job.alloc",
        }
    }
}

/// The calls of the job that a member makes.
#[derive(Debug, Default)]
pub(super) struct JobCalls {
    /// True while it is in one. A second one at the same time is refused, and counts for nothing.
    is_in_one: AtomicBool,
    /// True if a rank has given up a call of the job, as far as this one knows.
    are_given_up: AtomicBool,
    /// The number of the probe that waits of calls of the job ask when the world has failed, or is not watched.
    probe: OnceLock<u32>,
}

/// The probe of calls of the job that asks only whether a rank has given up one.
#[derive(Debug)]
struct JobCallProbe(Weak<FailureMonitor>);

impl WaitProbe for JobCallProbe {
    fn probe_error(&self, _about: u32) -> Option<Cause> {
        self.0.upgrade()?.job_calls_given_up()
    }

    fn failure(&self, about: u32) -> Option<Cause> {
        self.probe_error(about)
    }
}

/// A call of the job under way, whose waits ask the probe of the world.
struct ActiveJobCall<'m, P>(&'m FailureMonitor, P);

impl JobCalls {
    pub(super) fn give_up(&self) {
        self.are_given_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn are_given_up(&self) -> bool {
        self.are_given_up.load(Ordering::Relaxed)
    }

    pub(super) fn probe(&self) -> Option<u32> {
        self.probe.get().copied()
    }
}

impl FailureMonitor {
    /// Begins a call of the job. None: the communicator has failed, members cannot read each other's words, or another
    /// thread is in a call of the job, so that this one will be refused.
    pub(crate) fn begin_job_call(&self, what: JobCall) -> Option<impl Drop> {
        if !self.reads_words
            || self.check().is_err()
            || self.job_calls.is_in_one.swap(true, Ordering::Relaxed)
        {
            return None;
        }
        let number = self.waits.job_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let lane = if what == JobCall::Barrier { Lane::JobBarrier } else { Lane::JobAlloc };
        Some(ActiveJobCall(self, scoped_wait_probe_about(self.probe(), lane.about(number))))
    }

    /// Returns the number of the probe by which waits of calls of the job learn that a rank has given up one.
    pub(crate) fn job_call_probe(self: &Arc<Self>, worker: &Worker) -> u32 {
        let add = || worker.wait_probes().add(Arc::new(JobCallProbe(Arc::downgrade(self))));
        *self.job_calls.probe.get_or_init(add)
    }
}

impl<P> Drop for ActiveJobCall<'_, P> {
    fn drop(&mut self) {
        self.0.job_calls.is_in_one.store(false, Ordering::Relaxed);
    }
}
