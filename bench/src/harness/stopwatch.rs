//! Time between two moments, without what looking at the clock costs.

use std::time::Instant;

/// A running clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[inline(always)]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Nanoseconds since the start, less `cost_ns`.
    #[inline(always)]
    pub(crate) fn ns(self, cost_ns: u64) -> u64 {
        (self.0.elapsed().as_nanos() as u64).saturating_sub(cost_ns)
    }

    /// What it shows when nothing happens: the median of many.
    pub(crate) fn cost_ns() -> u64 {
        let mut costs: Vec<u64> = (0..1001).map(|_| Stopwatch::start().ns(0)).collect();
        costs.sort_unstable();
        costs[costs.len() / 2]
    }
}
