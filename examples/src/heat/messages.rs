//! The exchange of rows between neighbours by messages. Each rank begins to receive the neighbour's
//! outermost row and to send its own, computes, and waits for both before it needs them.
//!
//! Slots guarantee what [`PutExchange`](super::PutExchange) has to prove: a message is not sent before its receive is
//! posted, so that no row is overwritten before it is read, and one slot for each direction keeps the rows in order.
//! The price: each row waits for its receive and is copied once more on both sides.

use super::exchange::Exchange;
use super::strip::Strip;
use super::transfer_count::TransferCount;
use tasuki::message::{RecvRequest, SendRequest};
use tasuki::prelude::*;

/// One slot is enough, because a pair of ranks has one slot with this index in each direction.
const ROWS: Slot = Slot(0);

/// A neighbour, and the messages to and from it.
#[derive(Debug)]
struct MessageNeighbour {
    rank: Rank,
    state: State,
}

/// The vectors of the last row received and of the last row sent, or the messages that use these vectors.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum State {
    Idle(Vec<f64>, Vec<f64>),
    InFlight(RecvRequest<f64>, SendRequest<f64>),
}

/// The exchange of one rank with the ranks above and below.
#[derive(Debug)]
pub struct MessageExchange<'job> {
    job: &'job Job,
    above: Option<MessageNeighbour>,
    below: Option<MessageNeighbour>,
    /// Rows whose send was begun.
    put: TransferCount,
    /// Rows waited for and copied out.
    taken: TransferCount,
}

impl<'job> MessageExchange<'job> {
    /// Makes the exchange as [`PutExchange::new`](super::PutExchange::new) does. Not collective, because messages
    /// need no preparation.
    pub fn new(job: &'job Job, columns: usize, above: bool, below: bool) -> MessageExchange<'job> {
        let idle = || State::Idle(vec![0.0; columns], vec![0.0; columns]);
        let at = |steps| MessageNeighbour { rank: job.rank_after(steps), state: idle() };
        let (above, below) = (above.then(|| at(-1)), below.then(|| at(1)));
        MessageExchange { job, above, below, put: TransferCount::default(), taken: TransferCount::default() }
    }
}

impl Exchange for MessageExchange<'_> {
    fn take(&mut self, _iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        if let Some(above) = &mut self.above {
            above.take(self.job, &mut self.taken, strip.ghost_above())?;
        }
        if let Some(below) = &mut self.below {
            below.take(self.job, &mut self.taken, strip.ghost_below())?;
        }
        Ok(())
    }

    fn put(&mut self, _iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        if let Some(above) = &mut self.above {
            above.put(self.job, &mut self.put, strip.new_row(1))?;
        }
        if let Some(below) = &mut self.below {
            below.put(self.job, &mut self.put, strip.new_row(strip.rows()))?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        [self.put, self.taken]
    }
}

impl MessageNeighbour {
    /// Waits for the row in flight; there is none before the first iteration. The neighbour has received this rank's
    /// row by then, or is about to, so waiting for the send, too, loses no time.
    fn take(&mut self, job: &Job, taken: &mut TransferCount, ghost: &mut [f64]) -> tasuki::Result<()> {
        let idle = State::Idle(Vec::new(), Vec::new());
        match std::mem::replace(&mut self.state, idle) {
            State::InFlight(mut receive, mut send) => taken.measure(job, ghost.len(), || {
                let (received, _) = receive.wait()?;
                ghost.copy_from_slice(&received);
                self.state = State::Idle(received, send.wait()?);
                Ok(())
            }),
            idle => {
                self.state = idle;
                Ok(())
            }
        }
    }

    /// Begins the receive first, because the neighbour's row can arrive as soon as its receive is posted.
    fn put(&mut self, job: &Job, put: &mut TransferCount, row: &[f64]) -> tasuki::Result<()> {
        let State::Idle(received, sent) = &mut self.state else { return Ok(()) };
        let (received, mut sent) = (std::mem::take(received), std::mem::take(sent));
        put.measure(job, row.len(), || {
            let receive = job.world().irecv(received, self.rank, ROWS)?;
            sent.copy_from_slice(row);
            self.state = State::InFlight(receive, job.world().isend(sent, self.rank, ROWS)?);
            Ok(())
        })
    }
}
