//! Counts of what was communicated, and how long it took.

use std::time::Duration;
use tasuki::Job;

/// Transfers of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Moved {
    /// How many transfers.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time in the calls.
    pub nanoseconds: u64,
}

impl Moved {
    /// Makes a transfer of `values` and counts it.
    pub fn counting<T>(
        &mut self,
        job: &Job,
        values: usize,
        transfer: impl FnOnce() -> tasuki::Result<T>,
    ) -> tasuki::Result<T> {
        let begin = job.clock();
        let outcome = transfer()?;
        self.count += 1;
        self.bytes += (values * size_of::<f64>()) as u64;
        self.nanoseconds += nanoseconds(job.clock() - begin);
        Ok(outcome)
    }

    /// Bytes per nanosecond, which is GB/s; 0 where nothing was moved.
    pub fn gigabytes_per_second(&self) -> f64 {
        if self.nanoseconds == 0 { 0.0 } else { self.bytes as f64 / self.nanoseconds as f64 }
    }
}

/// What one rank tells at the end of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Part {
    /// Its rows.
    pub rows: u64,
    /// The largest change of one of its cells in the last iteration.
    pub change: f64,
    /// Rows put to its neighbours.
    pub put: Moved,
    /// Rows that its neighbours put, and how long it waited for them and copied them out of its job memory.
    pub taken: Moved,
    /// Time of all iterations.
    pub nanoseconds: u64,
}

impl Part {
    /// Which part of the time went into communication, waiting included.
    pub fn share_communicating(&self) -> f64 {
        (self.put.nanoseconds + self.taken.nanoseconds) as f64 / self.nanoseconds.max(1) as f64
    }
}

/// A duration as a number that may lie in job memory.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
