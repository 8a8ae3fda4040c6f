//! Collective calls of the job, such as `job.barrier()`. They go by other means, beside the calls of the world, whose
//! members find out if others are in a call of the job instead
//! ([`published_wait`](crate::failure::published_wait)).

use crate::failure::monitor::FailureMonitor;
use crate::failure::published_wait::Lane;
use std::sync::atomic::Ordering;
use tasuki_core::engine::scoped_wait_probe_about;

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

/// A call of the job under way, whose waits ask the probe of the world.
struct ActiveJobCall<'m, P>(&'m FailureMonitor, P);

impl FailureMonitor {
    /// Begins a call of the job. None: the communicator has failed, members cannot read each other's words, or another
    /// thread is in a call of the job, so that this one will be refused.
    pub(crate) fn begin_job_call(&self, what: JobCall) -> Option<impl Drop> {
        if !self.reads_words || self.check().is_err() || self.is_in_job_call.swap(true, Ordering::Relaxed) {
            return None;
        }
        let number = self.lane_count(Lane::JobBarrier).fetch_add(1, Ordering::Relaxed) + 1;
        let lane = if what == JobCall::Barrier { Lane::JobBarrier } else { Lane::JobAlloc };
        Some(ActiveJobCall(self, scoped_wait_probe_about(self.probe(), lane.about(number))))
    }
}

impl<P> Drop for ActiveJobCall<'_, P> {
    fn drop(&mut self) {
        self.0.is_in_job_call.store(false, Ordering::Relaxed);
    }
}
