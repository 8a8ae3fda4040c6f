//! The exchange of rows between neighbours by commands that are prepared once, before the first iteration.
//!
//! A rank writes an outermost row into a place of its own job memory and raises one signal at the neighbour; that is
//! all it does. At the neighbour a session queue has the commands that fetch such rows, one for each place, again and
//! again. The `k`-th raise lets the `k`-th command go: nothing is posted per step, and nothing is reset. It is run by
//! the neighbour if that waits, else by the rank that raised the signal: **by whoever has time**, while the other one
//! computes. By [`Halo`](super::Halo) it is always the giver who copies. The price is one copy more, into the giver's
//! own memory, since a command reads its source when it runs, and the strip goes on meanwhile.
//!
//! **No row is overwritten before it is read.** Rows from one side have two places where they are given and two where
//! they are fetched to; row `k` uses place `k % 2` of both. Let A and B be neighbours. A writes row `k + 2` where its
//! row `k` was, and lets the command go that writes over B's copy of row `k`, after taking B's row `k + 1`. B gave that
//! after it had taken A's row `k`: it saw that the copy was made, and read it. With one place instead of two neither
//! would hold, as in [`Halo`](super::Halo).
//!
//! **Row `k` has come** when its signal has counted `k`. One signal serves both places, where [`Halo`](super::Halo)
//! needs two: commands of one queue that raise the same signal have their effects in the order in which they fired.

use super::exchange::Exchange;
use super::moved::Moved;
use super::strip::Strip;
use tasuki::prelude::*;

/// Rows that may be on their way from one side.
const PLACES: usize = 2;

/// A side of a strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Above,
    Below,
}

/// What a place is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// A row of ours, that the neighbour fetches.
    Given,
    /// A row of the neighbour's, fetched.
    Fetched,
}

/// A neighbour, and what is prepared for the rows from it.
#[derive(Debug)]
struct Neighbour<'job> {
    rank: Rank,
    side: Side,
    /// Raised there, when it may fetch a row of ours.
    given: Signal<'job>,
    /// Raised here, when a row of its has been fetched.
    fetched: Signal<'job>,
    /// Fetches them.
    _queue: Queue,
}

/// The exchange of one rank with the ranks above and below. The queues go before the memory that they use.
#[derive(Debug)]
pub struct Prepared<'job> {
    job: &'job Job,
    columns: usize,
    above: Option<Neighbour<'job>>,
    below: Option<Neighbour<'job>>,
    /// On every rank: for each side and each use two rows.
    rows: Array<f64>,
    /// Rows given.
    put: Moved,
    /// Rows waited for and copied out.
    taken: Moved,
}

impl Side {
    fn opposite(self) -> Side {
        match self {
            Side::Above => Side::Below,
            Side::Below => Side::Above,
        }
    }

    /// Which row of a rank's part of the job memory is the place of row `iteration`.
    fn place(self, of: Use, iteration: usize) -> usize {
        (2 * self as usize + of as usize) * PLACES + iteration % PLACES
    }
}

impl<'job> Prepared<'job> {
    /// Makes the exchange, as [`Halo::new`](super::Halo::new), and posts its commands. Collective; no rank may put a
    /// row before it has returned on all.
    pub fn new(job: &'job Job, columns: usize, above: bool, below: bool) -> tasuki::Result<Prepared<'job>> {
        let rows = job.alloc(2 * 2 * PLACES * columns)?;
        let given = [job.signal()?, job.signal()?];
        let fetched = [job.signal()?, job.signal()?];
        let neighbour = |side: Side, steps| -> tasuki::Result<Neighbour<'job>> {
            let (rank, fetched) = (job.rank_after(steps), fetched[side as usize]);
            let queue = job.session_queue(PLACES, &given[side as usize])?;
            for iteration in 1..=PLACES {
                let at = |rank, side: Side, of| rows.on(rank).at(side.place(of, iteration) * columns);
                let from = at(rank, side.opposite(), Use::Given);
                let fetch = Command::copy(from, at(job.rank(), side, Use::Fetched), columns);
                queue.post(fetch.then(fetched.on(job.rank()).add(1)))?;
            }
            queue.repeat()?;
            // What is above for us is below for it.
            let given = given[side.opposite() as usize];
            Ok(Neighbour { rank, side, given, fetched, _queue: queue })
        };
        let above = above.then(|| neighbour(Side::Above, -1)).transpose()?;
        let below = below.then(|| neighbour(Side::Below, 1)).transpose()?;
        Ok(Prepared { job, columns, above, below, rows, put: Moved::default(), taken: Moved::default() })
    }
}

impl Exchange for Prepared<'_> {
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        if iteration == 0 {
            return Ok(());
        }
        let sides = [&self.above, &self.below];
        for from in sides.into_iter().flatten() {
            let ghost = match from.side {
                Side::Above => strip.ghost_above(),
                Side::Below => strip.ghost_below(),
            };
            let first = from.side.place(Use::Fetched, iteration) * self.columns;
            self.taken.counting(self.job, ghost.len(), || {
                from.fetched.wait_at_least(iteration as u64)?;
                self.rows.read(first, ghost)
            })?;
        }
        Ok(())
    }

    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        let sides = [&self.above, &self.below];
        for to in sides.into_iter().flatten() {
            let row = strip.new_row(if to.side == Side::Above { 1 } else { strip.rows() });
            let first = to.side.place(Use::Given, iteration) * self.columns;
            self.put.counting(self.job, row.len(), || {
                self.rows.write(first, row)?;
                self.job.raise(to.given.on(to.rank), 1)
            })?;
        }
        Ok(())
    }

    fn moved(&self) -> [Moved; 2] {
        [self.put, self.taken]
    }
}
