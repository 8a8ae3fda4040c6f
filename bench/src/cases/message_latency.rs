//! message and posted: one way of a message of eight bytes, as half a ping-pong; the receive is posted before the send
//! looks for it.

use crate::cases::put_latency::{answer, one_way};
use crate::harness::measure::{Measure, peer, side, wrong};
use crate::limit::Side;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tasuki::{Communicator, Job, Rank, RecvRequest, Slot};

/// Slots, by what goes over them.
const WORD: Slot = Slot(0);
const MEET: Slot = Slot(1);
/// Of receives that nobody sends for while others are measured.
const OTHERS: Range<u32> = 200..800;

/// What one of two ranks needs to exchange messages with the other.
#[derive(Clone, Copy)]
pub(crate) struct MessageEnds<'j> {
    /// In which messages go.
    pub(crate) world: &'j Communicator,
    /// The other rank.
    pub(crate) peer: Rank,
    /// Whether this one begins.
    pub(crate) side: Side,
}

impl<'j> MessageEnds<'j> {
    /// Of this rank.
    pub(crate) fn new(job: &'j Job) -> MessageEnds<'j> {
        MessageEnds { world: job.world(), peer: peer(job), side: side(job) }
    }

    /// The lead learns that the follower is ready.
    pub(crate) fn meet(&self) -> tasuki::Result<()> {
        match self.side {
            Side::Lead => self.world.recv(&mut [0_u64], self.peer, MEET).map(drop),
            Side::Follow => self.world.send(&[1_u64], self.peer, MEET),
        }
    }

    fn send(&self, value: u64) -> tasuki::Result<()> {
        self.world.send(&[value], self.peer, WORD)
    }
}

/// How a program may receive; the better one counts, for every library.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum SendMode {
    /// A receive is begun, and waited for later.
    Begun,
    /// By the call that returns with the message.
    Call,
}

/// A message each way in flight.
pub(crate) struct Message<'j> {
    ends: MessageEnds<'j>,
    mode: SendMode,
    sent: u64,
    rounds: u64,
}

impl<'j> Message<'j> {
    /// `rounds` ping-pongs.
    pub(crate) fn new(job: &'j Job, mode: SendMode, rounds: u64) -> Message<'j> {
        Message { ends: MessageEnds::new(job), mode, sent: 0, rounds }
    }

    fn exchange(&mut self, rounds: u64) -> tasuki::Result<()> {
        let values = self.sent..self.sent + rounds;
        self.sent = values.end;
        match (self.mode, self.ends.side) {
            (SendMode::Begun, Side::Lead) => begun_lead(&self.ends, values),
            (SendMode::Begun, Side::Follow) => begun_follow(&self.ends, values),
            (SendMode::Call, Side::Lead) => call_lead(&self.ends, values),
            (SendMode::Call, Side::Follow) => call_follow(&self.ends, values),
        }
    }
}

impl Measure for Message<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        one_way(self.rounds, |rounds| self.exchange(rounds))
    }
}

#[inline(never)]
fn begun_lead(ends: &MessageEnds<'_>, values: Range<u64>) -> tasuki::Result<()> {
    ends.meet()?;
    for value in values {
        let mut got = [0];
        ends.world.scope(|scope| {
            scope.recv(&mut got, ends.peer, WORD)?;
            ends.send(value)
        })?;
        expect(got[0], answer(value))?;
    }
    Ok(())
}

/// The next receive is posted before the answer that lets the other side send for it.
#[inline(never)]
fn begun_follow(ends: &MessageEnds<'_>, values: Range<u64>) -> tasuki::Result<()> {
    let (first, end) = (values.start, values.end);
    for value in values {
        let mut got = [0];
        ends.world.scope(|scope| {
            scope.recv(&mut got, ends.peer, WORD)?;
            if value == first { ends.meet() } else { ends.send(answer(value - 1)) }
        })?;
        expect(got[0], value)?;
    }
    if end > first { ends.send(answer(end - 1)) } else { Ok(()) }
}

/// The follower waits in its call before the lead sends; the lead asks for its answer while that is on its way.
#[inline(never)]
fn call_lead(ends: &MessageEnds<'_>, values: Range<u64>) -> tasuki::Result<()> {
    ends.meet()?;
    for value in values {
        ends.send(value)?;
        let mut got = [0];
        ends.world.recv(&mut got, ends.peer, WORD)?;
        expect(got[0], answer(value))?;
    }
    Ok(())
}

#[inline(never)]
fn call_follow(ends: &MessageEnds<'_>, values: Range<u64>) -> tasuki::Result<()> {
    ends.meet()?;
    for value in values {
        let mut got = [0];
        ends.world.recv(&mut got, ends.peer, WORD)?;
        expect(got[0], value)?;
        ends.send(answer(value))?;
    }
    Ok(())
}

#[inline(always)]
fn expect(got: u64, value: u64) -> tasuki::Result<()> {
    if got == value { Ok(()) } else { Err(wrong("message")) }
}

/// Something measured while many more receives are outstanding, posted before and finished after.
pub(crate) struct Posted<'j, M> {
    ends: MessageEnds<'j>,
    measure: M,
}

impl<'j, M: Measure> Posted<'j, M> {
    /// Of that measure.
    pub(crate) fn new(job: &'j Job, measure: M) -> Posted<'j, M> {
        Posted { ends: MessageEnds::new(job), measure }
    }

    fn post(&self) -> tasuki::Result<Vec<RecvRequest<u64>>> {
        OTHERS.map(|slot| self.ends.world.irecv(vec![0_u64], self.ends.peer, Slot(slot))).collect()
    }

    fn finish(&self, others: Vec<RecvRequest<u64>>) -> tasuki::Result<()> {
        for slot in OTHERS {
            self.ends.world.send(&[u64::from(slot)], self.ends.peer, Slot(slot))?;
        }
        for (mut receiving, slot) in others.into_iter().zip(OTHERS) {
            expect(receiving.wait()?.0[0], u64::from(slot))?;
        }
        Ok(())
    }
}

impl<M: Measure> Measure for Posted<'_, M> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let others = self.post()?;
        self.ends.meet()?;
        let figure = self.measure.measure()?;
        self.finish(others).map(|()| figure)
    }
}
