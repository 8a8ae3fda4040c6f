//! The exchange of rows between neighbours by commands that are posted once, before the first iteration.
//!
//! A rank writes an outermost row into its own job memory and raises a signal at the neighbour. The neighbour's
//! session queue has the commands that fetch such rows, one for each buffer, and repeats them. Raise number `k` lets
//! command number `k` run: no command is posted in an iteration, and nothing is reset. If the neighbour waits, it
//! runs the command; otherwise the rank that raised the signal does. So **the rank that has time** copies the row,
//! while the other one computes. With [`PutExchange`](super::PutExchange) the sender always copies. The price is one
//! more copy, into the sender's own job memory, because a command reads its source when it runs, and the strip
//! changes meanwhile.
//!
//! **No row is overwritten before it is read.** For the rows from one side there are two buffers at the sender and
//! two at the receiver; row `k` uses buffer `k % 2` of both. Let A and B be neighbours. A writes row `k + 2` into the
//! buffer of its row `k`, and starts the command that overwrites B's copy of row `k`, after it has taken B's row `k +
//! 1`. B sent that row after it had taken A's row `k`: the copy was complete, and B had read it. With one buffer
//! instead of two neither would hold, as in [`PutExchange`](super::PutExchange).
//!
//! **Row `k` has arrived** when its signal has counted `k`. One signal is enough for both buffers, where
//! [`PutExchange`](super::PutExchange) needs two: the commands of one queue that raise the same signal have their
//! effects in the order in which they fired.

use super::exchange::Exchange;
use super::strip::Strip;
use super::transfer_count::TransferCount;
use tasuki::prelude::*;

/// Buffers for the rows from one side.
const BUFFERS: usize = 2;

/// A side of a strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Above,
    Below,
}

/// The purpose of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Holds a row of this rank for the neighbour.
    Sent,
    /// Holds a row of the neighbour that was fetched.
    Fetched,
}

/// A neighbour, with what was prepared for the rows from it.
#[derive(Debug)]
struct CommandNeighbour<'job> {
    rank: Rank,
    side: Side,
    /// Raised at the neighbour when it may fetch a row of this rank.
    may_fetch: Signal<'job>,
    /// Raised at this rank when a row of the neighbour has been fetched.
    fetched: Signal<'job>,
    /// Fetches the neighbour's rows.
    _queue: Queue,
}

/// The exchange of one rank with the ranks above and below. The queues are dropped before the memory that they use.
#[derive(Debug)]
pub struct CommandExchange<'job> {
    job: &'job Job,
    columns: usize,
    above: Option<CommandNeighbour<'job>>,
    below: Option<CommandNeighbour<'job>>,
    /// On every rank: two rows for each side and each purpose.
    rows: Array<f64>,
    /// Rows sent.
    put: TransferCount,
    /// Rows waited for and copied out.
    taken: TransferCount,
}

impl Side {
    fn opposite(self) -> Side {
        match self {
            Side::Above => Side::Below,
            Side::Below => Side::Above,
        }
    }

    /// The buffer of row `iteration`, as a row number in a rank's part of the job memory.
    fn buffer(self, of: Purpose, iteration: usize) -> usize {
        (2 * self as usize + of as usize) * BUFFERS + iteration % BUFFERS
    }
}

impl<'job> CommandExchange<'job> {
    /// Makes the exchange as [`PutExchange::new`](super::PutExchange::new) does, and posts its commands. Collective.
    /// No rank may send a row before the call has returned on all ranks.
    pub fn new(
        job: &'job Job,
        columns: usize,
        above: bool,
        below: bool,
    ) -> tasuki::Result<CommandExchange<'job>> {
        let rows = job.alloc(2 * 2 * BUFFERS * columns)?;
        let may_fetch = [job.signal()?, job.signal()?];
        let fetched = [job.signal()?, job.signal()?];
        let neighbour = |side: Side, steps| -> tasuki::Result<CommandNeighbour<'job>> {
            let (rank, fetched) = (job.rank_after(steps), fetched[side as usize]);
            let queue = Queue::session(job, BUFFERS, &may_fetch[side as usize])?;
            for iteration in 1..=BUFFERS {
                let at = |rank, side: Side, of| rows.on(rank).at(side.buffer(of, iteration) * columns);
                let from = at(rank, side.opposite(), Purpose::Sent);
                let fetch = Command::copy(from, at(job.rank(), side, Purpose::Fetched), columns);
                queue.post(fetch.then(fetched.on(job.rank()).add(1)))?;
            }
            queue.repeat()?;
            // The side above this rank is the side below its neighbour.
            let may_fetch = may_fetch[side.opposite() as usize];
            Ok(CommandNeighbour { rank, side, may_fetch, fetched, _queue: queue })
        };
        let above = above.then(|| neighbour(Side::Above, -1)).transpose()?;
        let below = below.then(|| neighbour(Side::Below, 1)).transpose()?;
        Ok(CommandExchange {
            job,
            columns,
            above,
            below,
            rows,
            put: TransferCount::default(),
            taken: TransferCount::default(),
        })
    }
}

impl Exchange for CommandExchange<'_> {
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
            let first = from.side.buffer(Purpose::Fetched, iteration) * self.columns;
            self.taken.measure(self.job, ghost.len(), || {
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
            let first = to.side.buffer(Purpose::Sent, iteration) * self.columns;
            self.put.measure(self.job, row.len(), || {
                self.rows.write(first, row)?;
                self.job.raise(to.may_fetch.on(to.rank), 1)
            })?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        [self.put, self.taken]
    }
}
