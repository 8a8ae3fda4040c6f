//! Counts and times of transfers.

use std::time::Duration;
use tasuki::Job;

/// Transfers of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct TransferCount {
    /// Number of transfers.
    pub count: u64,
    /// Bytes of all these transfers.
    pub bytes: u64,
    /// Time spent in the calls.
    pub nanoseconds: u64,
}

impl TransferCount {
    /// Runs a transfer of `values` values, counts it and measures its time.
    pub fn measure<T>(
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

    /// Bytes per nanosecond, which is GB/s; 0 if nothing was transferred.
    pub fn gigabytes_per_second(&self) -> f64 {
        if self.nanoseconds == 0 { 0.0 } else { self.bytes as f64 / self.nanoseconds as f64 }
    }
}

/// What one rank reports at the end of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RankReport {
    /// The number of its rows.
    pub rows: u64,
    /// The largest change of its cells in the last iteration.
    pub change: f64,
    /// Rows that it sent to its neighbours.
    pub put: TransferCount,
    /// Rows that its neighbours sent, with the time in which it waited for them and copied them out.
    pub taken: TransferCount,
    /// Time of all iterations.
    pub nanoseconds: u64,
}

impl RankReport {
    /// The fraction of the time that was spent on communication, including waits.
    pub fn communication_share(&self) -> f64 {
        (self.put.nanoseconds + self.taken.nanoseconds) as f64 / self.nanoseconds.max(1) as f64
    }
}

/// A duration as a number that can be stored in job memory.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
