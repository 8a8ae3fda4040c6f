//! The exchange of rows between neighbours by messages: each begins to receive the other's outermost row and to send
//! its own, computes, and waits for both before it needs them.
//!
//! What [`Halo`](super::Halo) has to prove, slots give: a message is not sent before its receive stands there, so no
//! row is overwritten before it is read, and one slot for each direction keeps the rows in order. For that each row
//! waits for its receive, and is copied once more on both sides.

use super::exchange::Exchange;
use super::moved::Moved;
use super::strip::Strip;
use tasuki::prelude::*;
use tasuki::{RecvRequest, SendRequest};

/// One slot is enough: a pair of ranks has one of each number in each direction.
const ROWS: Slot = Slot(0);

/// A neighbour, and what goes to it and comes from it.
#[derive(Debug)]
struct Neighbour {
    rank: Rank,
    state: State,
}

/// The vectors of a row that was received and of one that was sent, or the messages that use them.
#[derive(Debug)]
enum State {
    Idle(Vec<f64>, Vec<f64>),
    UnderWay(RecvRequest<f64>, SendRequest<f64>),
}

/// The exchange of one rank with the ranks above and below.
#[derive(Debug)]
pub struct Mail<'job> {
    job: &'job Job,
    above: Option<Neighbour>,
    below: Option<Neighbour>,
    /// Rows whose send was begun.
    put: Moved,
    /// Rows waited for and copied out.
    taken: Moved,
}

impl<'job> Mail<'job> {
    /// Makes the exchange, as [`Halo::new`](super::Halo::new), but not collective: messages need no preparation.
    pub fn new(job: &'job Job, columns: usize, above: bool, below: bool) -> Mail<'job> {
        let idle = || State::Idle(vec![0.0; columns], vec![0.0; columns]);
        let at = |steps| Neighbour { rank: job.rank_after(steps), state: idle() };
        let (above, below) = (above.then(|| at(-1)), below.then(|| at(1)));
        Mail { job, above, below, put: Moved::default(), taken: Moved::default() }
    }
}

impl Exchange for Mail<'_> {
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

    fn moved(&self) -> [Moved; 2] {
        [self.put, self.taken]
    }
}

impl Neighbour {
    /// Waits for the row under way, if there is one: before the first iteration there is none. Its counterpart was
    /// taken by then, or is about to be, so nothing is lost by waiting for that, too.
    fn take(&mut self, job: &Job, taken: &mut Moved, ghost: &mut [f64]) -> tasuki::Result<()> {
        let idle = State::Idle(Vec::new(), Vec::new());
        match std::mem::replace(&mut self.state, idle) {
            State::UnderWay(mut receiving, mut sending) => taken.counting(job, ghost.len(), || {
                let (theirs, _) = receiving.wait()?;
                ghost.copy_from_slice(&theirs);
                self.state = State::Idle(theirs, sending.wait()?);
                Ok(())
            }),
            idle => {
                self.state = idle;
                Ok(())
            }
        }
    }

    /// Receives first: the neighbour's row can come as soon as it is asked for.
    fn put(&mut self, job: &Job, put: &mut Moved, row: &[f64]) -> tasuki::Result<()> {
        let State::Idle(theirs, ours) = &mut self.state else { return Ok(()) };
        let (theirs, mut ours) = (std::mem::take(theirs), std::mem::take(ours));
        put.counting(job, row.len(), || {
            let receiving = job.world().irecv(theirs, self.rank, ROWS)?;
            ours.copy_from_slice(row);
            self.state = State::UnderWay(receiving, job.world().isend(ours, self.rank, ROWS)?);
            Ok(())
        })
    }
}
