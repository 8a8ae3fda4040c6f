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

/// The signals of the buffers for the rows from one side.
type Arrivals<'job> = [Signal<'job>; BUFFERS];

/// A neighbour, with the signals and buffers for both directions.
#[derive(Clone, Copy, Debug)]
struct PutNeighbour<'job> {
    rank: Rank,
    /// Raised at this rank by the neighbour, with its rows.
    arrived: Arrivals<'job>,
    /// Raised at the neighbour by this rank, with this rank's rows.
    sent: Arrivals<'job>,
    /// The first buffer of the neighbour's rows in this rank's part of the job memory, as a row number.
    received_at: usize,
    /// The first buffer of this rank's rows in the neighbour's part, as a row number.
    sent_at: usize,
}

/// The exchange of one rank with the ranks above and below.
#[derive(Debug)]
pub struct PutExchange<'job> {
    job: &'job Job,
    columns: usize,
    /// On every rank: two rows from above, two rows from below.
    rows: Array<f64>,
    above: Option<PutNeighbour<'job>>,
    below: Option<PutNeighbour<'job>>,
    /// Rows put.
    put: TransferCount,
    /// Rows waited for and copied out.
    taken: TransferCount,
}

impl Exchange for PutExchange<'_> {
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        if iteration == 0 {
            return Ok(());
        }
        if let Some(above) = self.above {
            self.take_from(&above, iteration, strip.ghost_above())?;
        }
        if let Some(below) = self.below {
            self.take_from(&below, iteration, strip.ghost_below())?;
        }
        Ok(())
    }

    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        if let Some(above) = self.above {
            self.put_to(&above, iteration, strip.new_row(1))?;
        }
        if let Some(below) = self.below {
            self.put_to(&below, iteration, strip.new_row(strip.rows()))?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        [self.put, self.taken]
    }
}

impl<'job> PutExchange<'job> {
    /// Makes the exchange for strips of `columns` columns. Collective. `above` and `below` are true if this rank's
    /// strip has a neighbour there, which is then the previous or the next rank.
    pub fn new(
        job: &'job Job,
        columns: usize,
        above: bool,
        below: bool,
    ) -> tasuki::Result<PutExchange<'job>> {
        let rows = job.alloc(2 * BUFFERS * columns)?;
        let from_above = [job.signal()?, job.signal()?];
        let from_below = [job.signal()?, job.signal()?];
        let (upper, lower) = (0, BUFFERS);
        let own = job.rank().0;
        let above = above.then(|| PutNeighbour {
            rank: Rank(own - 1),
            arrived: from_above,
            sent: from_below,
            received_at: upper,
            sent_at: lower,
        });
        let below = below.then(|| PutNeighbour {
            rank: Rank(own + 1),
            arrived: from_below,
            sent: from_above,
            received_at: lower,
            sent_at: upper,
        });
        Ok(PutExchange {
            job,
            columns,
            rows,
            above,
            below,
            put: TransferCount::default(),
            taken: TransferCount::default(),
        })
    }

    fn take_from(
        &mut self,
        from: &PutNeighbour<'job>,
        iteration: usize,
        ghost: &mut [f64],
    ) -> tasuki::Result<()> {
        let buffer = iteration % BUFFERS;
        let first = (from.received_at + buffer) * self.columns;
        self.taken.measure(self.job, ghost.len(), || {
            from.arrived[buffer].wait_at_least(iteration.div_ceil(BUFFERS) as u64)?;
            self.rows.read(first, ghost)
        })
    }

    fn put_to(&mut self, to: &PutNeighbour<'job>, iteration: usize, row: &[f64]) -> tasuki::Result<()> {
        let buffer = iteration % BUFFERS;
        let target = self.rows.on(to.rank).at((to.sent_at + buffer) * self.columns);
        self.put
            .measure(self.job, row.len(), || self.job.put_signal(target, row, to.sent[buffer].on(to.rank), 1))
    }
}
