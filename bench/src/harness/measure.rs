//! One figure that two ranks take together.

use crate::limit::{CopyLimit, RemoteLimit, Side};
use tasuki::{Cause, Error, Job, Rank};

/// Taken by both ranks at the same time; what the lead gets is the figure.
pub(crate) trait Measure {
    /// Measures once, after a warming-up that does not count.
    fn measure(&mut self) -> tasuki::Result<f64>;
}

impl Measure for RemoteLimit<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        RemoteLimit::measure(self).ok_or_else(|| wrong("the remote limit"))
    }
}

impl Measure for CopyLimit<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        CopyLimit::measure(self).ok_or_else(|| wrong("the copy limit"))
    }
}

/// That a value arrived which nobody had sent.
#[cold]
pub(crate) fn wrong(what: &str) -> Error {
    Error::new(Cause::Program(format!("{what}: what arrived is not what was sent")))
}

/// Which part rank 0 or 1 plays.
pub(crate) fn side(job: &Job) -> Side {
    if job.rank() == Rank(0) { Side::Lead } else { Side::Follow }
}

/// The other of two ranks.
pub(crate) fn peer(job: &Job) -> Rank {
    Rank(1 - job.rank().0)
}
