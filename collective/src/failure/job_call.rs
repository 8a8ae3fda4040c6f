//! The collective calls of the job, such as `job.barrier()`. They go by other means, beside the calls of the world,
//! whose members find out if others are in a call of the job instead
//! ([`published_wait`](crate::failure::published_wait)).

use crate::failure::published_wait::Lane;
use std::fmt;
use tasuki_core::base::ValueKind;

/// A collective call of the job with its arguments, in a word that all ranks compare: two bits for the call, and for an
/// allocation the kind of its values and their number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct JobCallSignature(u64);

const CALL_AT: u32 = 62;
const KIND_AT: u32 = CALL_AT - ValueKind::BITS;
const COUNT_MAX: u64 = (1 << KIND_AT) - 1;

impl JobCallSignature {
    /// The registration of handlers, which comes before all other calls.
    pub const HANDLERS: JobCallSignature = JobCallSignature(0);
    /// A barrier.
    pub const BARRIER: JobCallSignature = JobCallSignature(1 << CALL_AT);

    /// An allocation of `count` values.
    pub fn alloc<T: 'static>(count: usize) -> JobCallSignature {
        let kind = u64::from(ValueKind::of::<T>().bits());
        JobCallSignature(2 << CALL_AT | kind << KIND_AT | (count as u64).min(COUNT_MAX))
    }

    /// Returns the signature as a word.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the signature in a word.
    pub fn from_bits(bits: u64) -> JobCallSignature {
        JobCallSignature(bits)
    }

    /// Returns the lane of the call. An allocation consists of several calls.
    pub(crate) fn lane(self) -> Lane {
        if self.0 >> CALL_AT < 2 { Lane::JobBarrier } else { Lane::JobAlloc }
    }

    /// Returns what an allocation allocates: `4 x f64`.
    pub fn values(self) -> String {
        let kind = ValueKind::from_bits((self.0 >> KIND_AT) as u32);
        format!("{} x {}", self.0 & COUNT_MAX, kind.class())
    }
}

impl fmt::Display for JobCallSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lane() {
            _ if *self == JobCallSignature::HANDLERS => write!(f, "the registration of handlers"),
            Lane::JobAlloc => write!(f, "job.alloc({})", self.values()),
            _ => write!(f, "job.barrier()"),
        }
    }
}
