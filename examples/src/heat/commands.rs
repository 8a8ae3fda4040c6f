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

/// The exchange of one rank with the ranks above (side 0) and below (side 1). The queues are dropped before the memory
/// that they use.
#[derive(Debug)]
pub struct CommandExchange<'job> {
    job: &'job Job,
    columns: usize,
    peers: [Option<Rank>; 2],
    /// Fetch the neighbours' rows.
    _queues: Vec<Queue>,
    /// On every rank, for each side: two rows of this rank for the neighbour, then two rows fetched from it.
    rows: Array<f64>,
    /// Raised by the neighbour on that side when its row may be fetched.
    may_fetch: [Signal<'job>; 2],
    /// Raised at this rank when a row of the neighbour has been fetched.
    fetched: [Signal<'job>; 2],
    /// Rows sent, and rows waited for and copied out.
    counts: [TransferCount; 2],
}

/// The buffer of row `iteration`, as a row number in a rank's part of the job memory: one of those for the neighbour,
/// or of those that were fetched.
fn buffer(side: usize, is_fetched: bool, iteration: usize) -> usize {
    (2 * side + usize::from(is_fetched)) * BUFFERS + iteration % BUFFERS
}

impl<'job> CommandExchange<'job> {
    /// Makes the exchange as [`PutExchange::new`](super::PutExchange::new) does, and posts its commands. Collective.
    /// No rank may send a row before the call has returned on all ranks.
    pub fn new(job: &'job Job, columns: usize, peers: [Option<Rank>; 2]) -> tasuki::Result<Self> {
        let rows = job.alloc(2 * 2 * BUFFERS * columns)?;
        let (may_fetch, fetched) = ([job.signal()?, job.signal()?], [job.signal()?, job.signal()?]);
        let mut queues = Vec::new();
        for side in 0..2 {
            let Some(peer) = peers[side] else { continue };
            let queue = Queue::session(job, BUFFERS, &may_fetch[side])?;
            for iteration in 1..=BUFFERS {
                // The side of this rank at its neighbour is the other one.
                let from = rows.on(peer).at(buffer(1 - side, false, iteration) * columns);
                let to = rows.on(job.rank()).at(buffer(side, true, iteration) * columns);
                queue.post(Command::copy(from, to, columns).then(fetched[side].on(job.rank()).add(1)))?;
            }
            queue.repeat()?;
            queues.push(queue);
        }
        let counts = Default::default();
        Ok(CommandExchange { job, columns, peers, _queues: queues, rows, may_fetch, fetched, counts })
    }
}

impl Exchange for CommandExchange<'_> {
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        for side in (0..2).filter(|&side| iteration > 0 && self.peers[side].is_some()) {
            let (first, ghost) = (buffer(side, true, iteration) * self.columns, strip.ghost(side));
            self.counts[1].measure(self.job, ghost.len(), || {
                self.fetched[side].wait_at_least(iteration as u64)?;
                self.rows.read(first, ghost)
            })?;
        }
        Ok(())
    }

    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        for side in 0..2 {
            let (Some(peer), row) = (self.peers[side], strip.edge(side)) else { continue };
            let first = buffer(side, false, iteration) * self.columns;
            self.counts[0].measure(self.job, row.len(), || {
                self.rows.write(first, row)?;
                self.job.raise(self.may_fetch[1 - side].on(peer), 1)
            })?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        self.counts
    }
}
