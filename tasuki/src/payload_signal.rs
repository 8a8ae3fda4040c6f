//! Payload signals: a counter with a few bytes beside it, transferred in one cache line.

use crate::job::Job;
use crate::onesided::GlobalAddress;
use crate::request::{Request, future_by_request};
use crate::{Pod, Rank, Result};
use std::marker::PhantomData;
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition};
use tasuki_core::fabric::{LinePayload, Refused, SignalCell, SignalLine as CoreLine};
use tasuki_core::segment::layout::signal_offset;

/// On every rank a counter with 48 bytes of payload in its cache line. Each rank's counter has one writer and one
/// reader. Made by [`Job::payload_signal`].
///
/// ```
/// use tasuki::{Rank, Request};
/// tasuki::local(2, |job| {
///     let signal = job.payload_signal()?;
///     let peer = Rank(1 - job.rank().0);
///     let mut writer = signal.writer(peer)?;
///     if job.rank() == Rank(0) {
///         let mut sums = signal.reader::<u64>(Some(peer));
///         for round in 0..10_u64 {
///             writer.put(&[round, 7])?;
///             assert_eq!(sums.wait()?, round + 7); // the reply says that the value was read
///         }
///     } else {
///         let mut pairs = signal.reader::<[u64; 2]>(Some(peer));
///         for _ in 0..10 {
///             let [a, b] = pairs.wait()?;
///             writer.put(&(a + b))?;
///         }
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PayloadSignal<'job> {
    job: &'job Job,
    index: u32,
    cell: SignalCell,
}

/// The only writer of some rank's payload signal.
#[derive(Debug)]
pub struct PayloadWriter<'job> {
    job: &'job Job,
    line: CoreLine<'job>,
    to: Rank,
    written: u64,
}

/// The reader of this rank's payload signal. Made by [`PayloadSignal::reader`].
///
/// It is a request again and again: each wait returns the next value. Errors of a wait: a rank died or the writer left;
/// the writer wrote again before this value was read.
///
/// # Cancel safety
///
/// Dropping a future of a wait, `&mut reader`, loses no value.
#[derive(Debug)]
pub struct PayloadReader<'job, T> {
    job: &'job Job,
    cell: SignalCell,
    index: u32,
    from: Option<Rank>,
    read: u64,
    awaited: AwaitedCondition,
    of: PhantomData<fn() -> T>,
}

impl<'job> PayloadSignal<'job> {
    pub(crate) fn new(job: &'job Job, index: u32) -> Result<PayloadSignal<'job>> {
        let cell = job.worker.fabric().own_signal(index);
        let cell = cell.map_err(|cause| job.worker.fault(cause, || "payload_signal()".into()))?;
        Ok(PayloadSignal { job, index, cell })
    }

    /// Makes this rank the only writer of the payload signal of `to`. The program must ensure that there is only one:
    /// two writers would overwrite each other's payload, and the reader would find it torn or lost, though never
    /// unsafe.
    pub fn writer(&self, to: Rank) -> Result<PayloadWriter<'job>> {
        self.job.check_rank(to, "payload_signal.writer")?;
        let at = GlobalAddress::new(to, signal_offset(self.index));
        let line = self.job.worker.fabric().line(at);
        let line = line
            .map_err(|cause| self.job.worker.fault(cause, || format!("payload_signal.writer(rank {to})")))?;
        Ok(PayloadWriter { job: self.job, line, to, written: 0 })
    }

    /// The reader of this rank's payload signal, as values of type `T`. `from` is the writer, if it is known: a wait
    /// then ends with an error when that rank leaves.
    pub fn reader<T: Pod>(&self, from: Option<Rank>) -> PayloadReader<'job, T> {
        let (awaited, of) = (AwaitedCondition::default(), PhantomData);
        PayloadReader { job: self.job, cell: self.cell, index: self.index, from, read: 0, awaited, of }
    }
}

impl PayloadWriter<'_> {
    /// Writes a value of at most 48 bytes (checked at compile time) and raises the counter by one.
    ///
    /// The reader must have read the value before; there is no buffer. Never waits on mapped memory; otherwise waits
    /// until the fabric has room. Cost: the stores of one cache line.
    #[inline(always)] // the value goes from a register into the cache line
    pub fn put<T: bytemuck::NoUninit>(&mut self, value: &T) -> Result<()> {
        if let Err(cause) = self.job.worker.check() {
            return Err(self.fault(cause));
        }
        self.written = self.written.wrapping_add(1);
        match &self.line {
            CoreLine::Direct(line) => line.write(LinePayload::of(value), self.written),
            CoreLine::Via(_) => self.put_via(LinePayload::of(value))?,
        }
        Ok(())
    }

    #[cold]
    fn fault(&self, cause: Cause) -> crate::Error {
        self.job.worker.fault(cause, || format!("payload_signal.put(to rank {})", self.to))
    }

    #[cold]
    fn put_via(&self, payload: LinePayload) -> Result<()> {
        let CoreLine::Via(line) = self.line else { return Ok(()) };
        let worker = &self.job.worker;
        loop {
            match line.fabric.write_line(line.signal, payload, self.written) {
                Ok(()) => return Ok(()),
                Err(Refused::Again | Refused::Relay) => worker.relax("payload_signal.put")?,
                Err(Refused::Never(cause)) => return Err(self.fault(*cause)),
            }
        }
    }
}

impl<T: Pod> Request for PayloadReader<'_, T> {
    type Value = T;

    fn test(&mut self) -> bool {
        !matches!(self.job.worker.test(&self.next(), &String::new), Ok(false))
    }

    #[inline]
    fn wait(&mut self) -> Result<T> {
        let (next, cell) = (self.read.wrapping_add(1), self.cell); // both stay in registers after the wait
        let worker = &self.job.worker;
        worker
            .wait_signal(cell, next, self.from, &|| format!("payload signal {}: value {next}", self.index))?;
        match cell.read_payload(worker.fabric(), next) {
            Some(value) => {
                self.read = next;
                Ok(value)
            }
            None => Err(self.overrun(next)),
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        if self.test() {
            return Poll::Ready(());
        }
        let next = Awaited::only(self.next());
        self.awaited.set(&self.job.worker, next, context.waker());
        Poll::Pending
    }
}

future_by_request!(['job, T: Pod] PayloadReader<'job, T>);

impl<T> PayloadReader<'_, T> {
    /// The condition that the next value has arrived.
    fn next(&self) -> Condition {
        Condition::Signal(self.cell, self.read.wrapping_add(1), self.from)
    }

    #[cold]
    fn overrun(&self, next: u64) -> crate::Error {
        let text = "the writer wrote again before this value was read: reply to each value, or use several payload signals";
        self.job
            .worker
            .fault(Cause::Argument(text.into()), || format!("payload signal {}: value {next}", self.index))
    }
}
