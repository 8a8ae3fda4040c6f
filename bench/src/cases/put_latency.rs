//! put_near and put: one way of a value of eight bytes, as half a ping-pong.

use crate::harness::measure::{Measure, peer, side, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::{Array, Job, PayloadReader, PayloadWriter, Rank, RemoteSignal, Signal};

/// The answer to a value: another one, which only its receiver can know.
pub(crate) fn answer(value: u64) -> u64 {
    !value
}

/// Time of one way in ns of `rounds` ping-pongs by `exchange`, after a tenth of them to warm up.
pub(crate) fn one_way(
    rounds: u64,
    mut exchange: impl FnMut(u64) -> tasuki::Result<()>,
) -> tasuki::Result<f64> {
    exchange(rounds / 10 + 1)?;
    let watch = Stopwatch::start();
    exchange(rounds)?;
    Ok(watch.ns(0) as f64 / rounds as f64 / 2.0)
}

/// Value and signal in one cache line.
pub(crate) struct PutNear<'j> {
    side: Side,
    writer: PayloadWriter<'j>,
    reader: PayloadReader<'j>,
    sent: u64,
    rounds: u64,
}

impl<'j> PutNear<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, rounds: u64) -> tasuki::Result<PutNear<'j>> {
        let line = job.payload_signal()?;
        let (writer, reader) = (line.writer(peer(job))?, line.reader(Some(peer(job))));
        Ok(PutNear { side: side(job), writer, reader, sent: 0, rounds })
    }

    fn exchange(&mut self, rounds: u64) -> tasuki::Result<()> {
        let values = self.sent..self.sent + rounds;
        self.sent = values.end;
        match self.side {
            Side::Lead => near_lead(&mut self.writer, &mut self.reader, values),
            Side::Follow => near_follow(&mut self.writer, &mut self.reader, values),
        }
    }
}

impl Measure for PutNear<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        one_way(self.rounds, |rounds| self.exchange(rounds))
    }
}

#[inline(never)]
fn near_lead(
    writer: &mut PayloadWriter<'_>,
    reader: &mut PayloadReader<'_>,
    values: std::ops::Range<u64>,
) -> tasuki::Result<()> {
    for value in values {
        writer.put(&value)?;
        if reader.receive::<u64>()? != answer(value) {
            return Err(wrong("put_near"));
        }
    }
    Ok(())
}

#[inline(never)]
fn near_follow(
    writer: &mut PayloadWriter<'_>,
    reader: &mut PayloadReader<'_>,
    values: std::ops::Range<u64>,
) -> tasuki::Result<()> {
    for value in values {
        if reader.receive::<u64>()? != value {
            return Err(wrong("put_near"));
        }
        writer.put(&answer(value))?;
    }
    Ok(())
}

/// The value in job memory, its signal at least a page away: signals have pages of their own.
pub(crate) struct Put<'j> {
    side: Side,
    ends: PutEnds<'j>,
    sent: u64,
    rounds: u64,
}

/// What one rank needs to send and to receive.
struct PutEnds<'j> {
    job: &'j Job,
    inbox: Array<u64>,
    arrived: Signal<'j>,
    peer: Rank,
    raise: RemoteSignal,
}

impl<'j> Put<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, rounds: u64) -> tasuki::Result<Put<'j>> {
        let (inbox, arrived, peer) = (job.alloc(1)?, job.signal()?, peer(job));
        let ends = PutEnds { job, inbox, arrived, peer, raise: arrived.on(peer) };
        Ok(Put { side: side(job), ends, sent: 0, rounds })
    }

    fn exchange(&mut self, rounds: u64) -> tasuki::Result<()> {
        let values = self.sent..self.sent + rounds;
        self.sent = values.end;
        match self.side {
            Side::Lead => put_lead(&self.ends, values),
            Side::Follow => put_follow(&self.ends, values),
        }
    }
}

impl Measure for Put<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        one_way(self.rounds, |rounds| self.exchange(rounds))
    }
}

#[inline(never)]
fn put_lead(ends: &PutEnds<'_>, values: std::ops::Range<u64>) -> tasuki::Result<()> {
    for value in values {
        ends.job.put_signal(ends.inbox.on(ends.peer), &[value], ends.raise, 1)?;
        ends.arrived.wait_at_least(value + 1)?;
        if ends.inbox.get(0)? != answer(value) {
            return Err(wrong("put"));
        }
    }
    Ok(())
}

#[inline(never)]
fn put_follow(ends: &PutEnds<'_>, values: std::ops::Range<u64>) -> tasuki::Result<()> {
    for value in values {
        ends.arrived.wait_at_least(value + 1)?;
        if ends.inbox.get(0)? != value {
            return Err(wrong("put"));
        }
        ends.job.put_signal(ends.inbox.on(ends.peer), &[answer(value)], ends.raise, 1)?;
    }
    Ok(())
}
