//! The collective calls of the job.

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
            JobCall::Barrier => "job.barrier()",
            JobCall::Alloc => "job.alloc()",
        }
    }
}
