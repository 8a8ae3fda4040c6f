//! The exchange of rows between neighbours: each puts its outermost rows into the other's memory with a signal.
//!
//! Before iteration `k` a rank needs its neighbours' outermost rows as they are after `k` iterations, called row
//! `k` here. Each rank has two places in job memory for rows from each side, and a signal for each place; row `k`
//! goes to place `k % 2`. Row 0 is sent by nobody: every rank works out the start by itself. Let A and B be
//! neighbours.
//!
//! **No row is overwritten before it is read**, although the reader never says so. A puts row `k + 2` where its row
//! `k` was. It does so in iteration `k + 1`, after taking B's row `k + 1`. B put that in iteration `k`, after copying
//! A's row `k` out of job memory ([`Halo::take`]). So: B reads row `k`, then B puts row `k + 1`, then A sees it, then
//! A puts row `k + 2`. With one place instead of two it would not hold: A's row `k + 1` needs only B's row `k`, which
//! B puts before it reads A's row `k`.
//!
//! **Row `k` has come** when the signal of its place has counted `k.div_ceil(2)` rows. A count does not say which, so
//! only one row at a time may be on its way to a place: that is so, since B has read one before A puts the next, as
//! above. With one signal for both places it would not hold: rows `k` and `k + 1` may be on their way together, and
//! networks let the later overtake the earlier; `tests/heat_simulated.rs` would find it.

use super::exchange::Exchange;
use super::moved::Moved;
use super::strip::Strip;
use tasuki::prelude::*;

/// Rows that may be on their way from one side.
const PLACES: usize = 2;

/// The signals of the places for rows from one side.
type Arrivals<'job> = [Signal<'job>; PLACES];

/// A neighbour, and the two ends of the way to it and back.
#[derive(Clone, Copy, Debug)]
struct Neighbour<'job> {
    rank: Rank,
    /// Raised by the neighbour here, with its rows.
    arrived: Arrivals<'job>,
    /// Raised there, with ours.
    sent: Arrivals<'job>,
    /// The first place of its rows in our part of the job memory, in rows.
    theirs: usize,
    /// The first place of our rows in its part.
    ours: usize,
}

/// The exchange of one rank with the ranks above and below.
#[derive(Debug)]
pub struct Halo<'job> {
    job: &'job Job,
    columns: usize,
    /// On every rank: two rows from above, two from below.
    rows: Array<f64>,
    above: Option<Neighbour<'job>>,
    below: Option<Neighbour<'job>>,
    /// Rows put.
    put: Moved,
    /// Rows waited for and copied out.
    taken: Moved,
}

impl Exchange for Halo<'_> {
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

    fn moved(&self) -> [Moved; 2] {
        [self.put, self.taken]
    }
}

impl<'job> Halo<'job> {
    /// Makes the exchange for strips of `columns` columns. Collective; `above` and `below` say whether this rank's
    /// strip has a neighbour there, which is then the rank before or after.
    pub fn new(job: &'job Job, columns: usize, above: bool, below: bool) -> tasuki::Result<Halo<'job>> {
        let rows = job.alloc(2 * PLACES * columns)?;
        let from_above = [job.signal()?, job.signal()?];
        let from_below = [job.signal()?, job.signal()?];
        let (upper, lower) = (0, PLACES);
        let own = job.rank().0;
        let above = above.then(|| Neighbour {
            rank: Rank(own - 1),
            arrived: from_above,
            sent: from_below,
            theirs: upper,
            ours: lower,
        });
        let below = below.then(|| Neighbour {
            rank: Rank(own + 1),
            arrived: from_below,
            sent: from_above,
            theirs: lower,
            ours: upper,
        });
        Ok(Halo { job, columns, rows, above, below, put: Moved::default(), taken: Moved::default() })
    }

    fn take_from(
        &mut self,
        from: &Neighbour<'job>,
        iteration: usize,
        ghost: &mut [f64],
    ) -> tasuki::Result<()> {
        let place = iteration % PLACES;
        let first = (from.theirs + place) * self.columns;
        self.taken.counting(self.job, ghost.len(), || {
            from.arrived[place].wait_at_least(iteration.div_ceil(PLACES) as u64)?;
            self.rows.read(first, ghost)
        })
    }

    fn put_to(&mut self, to: &Neighbour<'job>, iteration: usize, row: &[f64]) -> tasuki::Result<()> {
        let place = iteration % PLACES;
        let there = self.rows.on(to.rank).at((to.ours + place) * self.columns);
        self.put
            .counting(self.job, row.len(), || self.job.put_signal(there, row, to.sent[place].on(to.rank), 1))
    }
}
