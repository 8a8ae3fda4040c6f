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

/// The exchange of one rank with the ranks above (side 0) and below (side 1).
#[derive(Debug)]
pub struct MessageExchange<'job> {
    job: &'job Job,
    peers: [Option<Rank>; 2],
    in_flight: [Option<(RecvRequest<f64>, SendRequest<f64>)>; 2],
    /// The vectors of the last row received and of the last row sent, to be used again.
    idle: [(Vec<f64>, Vec<f64>); 2],
    /// Rows whose send was begun, and rows waited for and copied out.
    counts: [TransferCount; 2],
}

impl<'job> MessageExchange<'job> {
    /// Makes the exchange with the given neighbours, above and below. Not collective, because messages need no
    /// preparation.
    pub fn new(job: &'job Job, columns: usize, peers: [Option<Rank>; 2]) -> MessageExchange<'job> {
        let idle = [(); 2].map(|()| (vec![0.0; columns], vec![0.0; columns]));
        MessageExchange { job, peers, in_flight: [None, None], idle, counts: Default::default() }
    }
}

impl Exchange for MessageExchange<'_> {
    /// Waits for the rows in flight; there are none before the first iteration. The neighbour has received this rank's
    /// row by then, or is about to, so waiting for the send, too, loses no time.
    fn take(&mut self, _iteration: usize, strip: &mut Strip) -> tasuki::Result<()> {
        for side in 0..2 {
            let (Some(both), ghost) = (self.in_flight[side].take(), strip.ghost(side)) else { continue };
            self.counts[1].measure(self.job, ghost.len(), || {
                let ((received, _), sent) = wait_all(both)?;
                ghost.copy_from_slice(&received);
                self.idle[side] = (received, sent);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Begins the receive first, because the neighbour's row can arrive as soon as its receive is posted.
    fn put(&mut self, _iteration: usize, strip: &Strip) -> tasuki::Result<()> {
        for side in 0..2 {
            let (Some(peer), row) = (self.peers[side], strip.edge(side)) else { continue };
            let (received, mut sent) = std::mem::take(&mut self.idle[side]);
            self.in_flight[side] = self.counts[0].measure(self.job, row.len(), || {
                let receive = self.job.world().irecv(received, peer, ROWS)?;
                sent.copy_from_slice(row);
                Ok(Some((receive, self.job.world().isend(sent, peer, ROWS)?)))
            })?;
        }
        Ok(())
    }

    fn transfer_counts(&self) -> [TransferCount; 2] {
        self.counts
    }
}
