//! The exchange of rows between neighbours by puts. Each rank puts its outermost rows into the
//! neighbour's memory with a signal.
//!
//! Before iteration `k` a rank needs its neighbours' outermost rows after `k` iterations, called
//! row `k` here. Each rank has two buffers in job memory for the rows from each side, and a signal
//! for each buffer; row `k` goes to buffer `k % 2`. Row 0 is never sent: every rank computes the
//! initial values itself. Let A and B be neighbours.
//!
//! **No row is overwritten before it is read**, although the reader sends no acknowledgement. A puts row `k + 2` into
//! the buffer of its row `k`. It does so in iteration `k + 1`, after taking B's row `k + 1`. B put that row in
//! iteration `k`, after copying A's row `k` out of job memory ([`Exchange::take`]). So: B reads row `k`, then B puts
//! row `k + 1`, then A sees it, then A puts row `k + 2`. With one buffer instead of two this would not hold: A's row
//! `k + 1` needs only B's row `k`, which B puts before it reads A's row `k`.
//!
//! **Row `k` has arrived** when the signal of its buffer has counted `k.div_ceil(2)` rows. A count does not say which
//! rows have arrived, so only one row may be in flight to a buffer at a time. That is so because B has read one row
//! before A puts the next, as shown above. One signal for both buffers would not do: rows `k` and `k + 1` may be in
//! flight at the same time, and networks let the later one overtake the earlier one; `tests/heat_simulated.rs` would
//! find that.

use super::exchange::Exchange;
use super::strip::Strip;
use super::transfer_count::TransferCount;
use tasuki::prelude::*;

/// Buffers for the rows from one side.
const BUFFERS: usize = 2;

/// The exchange of one rank with the ranks above (side 0) and below (side 1).
#[derive(Debug)]
pub struct PutExchange<'job> {
    job: &'job Job,
    columns: usize,
    peers: [Option<Rank>; 2],
    /// On every rank: the buffers for the rows from above, then those for the rows from below.
    rows: Array<f64>,
    /// For each buffer a signal, which the neighbour on that side raises with its rows.
    arrived: [[Signal<'job>; BUFFERS]; 2],
    /// Rows put, and rows waited for and copied out.
    counts: [TransferCount; 2],
}

impl<'job> PutExchange<'job> {
    /// Makes the exchange for strips of `columns` columns with the given neighbours, above and below. Collective. A
    /// neighbour above names this rank as its neighbour below.
    pub fn new(job: &'job Job, columns: usize, peers: [Option<Rank>; 2]) -> tasuki::Result<Self> {
        let rows = job.alloc(2 * BUFFERS * columns)?;
        let arrived = [[job.signal()?, job.signal()?], [job.signal()?, job.signal()?]];
        Ok(PutExchange { job, columns, peers, rows, arrived, counts: Default::default() })
    }

    /// The first value of the buffer for row `iteration` from a side.
    fn first(&self, side: usize, iteration: usize) -> usize {
        (side * BUFFERS + iteration % BUFFERS) * self.columns
    }
}

impl Exchange for PutExchange<'_> {
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        for side in (0..2).filter(|&side| iteration > 0 && self.peers[side].is_some()) {
            let (first, ghost) = (self.first(side, iteration), strip.ghost(side));
            self.counts[1].measure(self.job, ghost.len(), || {
                let arrived = self.arrived[side][iteration % BUFFERS];
                arrived.wait_at_least(iteration.div_ceil(BUFFERS) as u64)?;
                self.rows.read(first, ghost)
            })?;
        }
        Ok(())
    }

    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        for side in 0..2 {
            let (Some(peer), row) = (self.peers[side], strip.edge(side)) else { continue };
            let there = 1 - side; // the rank above has this rank below it
            let to = self.rows.on(peer).at(self.first(there, iteration));
            let arrived = self.arrived[there][iteration % BUFFERS].on(peer);
            self.counts[0].measure(self.job, row.len(), || self.job.put_signal(to, row, arrived, 1))?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        self.counts
    }
}
