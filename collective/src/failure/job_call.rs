//! The collective calls of the job, such as `job.barrier()`. They go by other means, beside the calls of the world,
//! whose members find out if others are in a call of the job instead
//! ([`published_wait`](crate::failure::published_wait)).

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
