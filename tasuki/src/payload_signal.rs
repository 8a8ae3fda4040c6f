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

/// On every rank a counter with a value in its cache line: the quickest way to transfer a few bytes. Each rank's
/// counter has one writer and one reader. A value has at most 48 bytes, which is checked at compile time.
///
/// ```
/// use tasuki::onesided::PayloadSignal;
/// use tasuki::{Rank, Request};
/// tasuki::local(2, |job| {
///     let (pairs, sums) = (PayloadSignal::<[u64; 2]>::new(job)?, PayloadSignal::<u64>::new(job)?);
///     let peer = job.rank_after(1);
///     if job.rank() == Rank(0) {
///         let (mut to, mut from) = (pairs.writer(peer)?, sums.reader(Some(peer)));
///         for round in 0..10 {
///             to.put(&[round, 7])?;
///             assert_eq!(from.wait()?, round + 7); // the reply says that the value was read
///         }
///     } else {
///         let (mut from, mut to) = (pairs.reader(Some(peer)), sums.writer(peer)?);
///         for _ in 0..10 {
///             let [a, b] = from.wait()?;
///             to.put(&(a + b))?;
///         }
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// ```compile_fail,E0080
/// # tasuki::local(1, |job| {
/// tasuki::onesided::PayloadSignal::<[u64; 7]>::new(job)?.writer(job.rank())?.put(&[0; 7]) // 56 bytes
/// # })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PayloadSignal<'job, T> {
    job: &'job Job,
    index: u32,
    cell: SignalCell,
    of: PhantomData<fn(T) -> T>,
}

/// The only writer of some rank's payload signal.
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::{PayloadSignal, PayloadWriter};
/// tasuki::local(2, |job| {
///     let states = PayloadSignal::<[f64; 2]>::new(job)?;
///     let peer = job.rank_after(1);
///     let mut to_peer: PayloadWriter<'_, [f64; 2]> = states.writer(peer)?;
///     to_peer.put(&[0.5, 1.5])?;
///     assert_eq!(states.reader(Some(peer)).wait()?, [0.5, 1.5]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct PayloadWriter<'job, T> {
    job: &'job Job,
    line: CoreLine<'job>,
    to: Rank,
    written: u64,
    of: PhantomData<fn(T)>,
}

/// The reader of this rank's payload signal. Made by [`PayloadSignal::reader`].
///
/// It is a request again and again: each wait returns the next value. Errors of a wait: a rank died or the writer left;
/// the writer wrote again before this value was read; the time limit of the rank
/// ([`Job::set_timeout`](crate::Job::set_timeout)).
///
/// ```
/// use tasuki::Request;
/// use tasuki::onesided::{PayloadReader, PayloadSignal};
/// tasuki::local(2, |job| {
///     let (numbers, peer) = (PayloadSignal::<u64>::new(job)?, job.rank_after(1));
///     let mut to_peer = numbers.writer(peer)?;
///     let mut from_peer: PayloadReader<'_, u64> = numbers.reader(Some(peer));
///     for round in 0..3 {
///         to_peer.put(&round)?;
///         assert_eq!(from_peer.wait()?, round); // the next value each time
///         job.barrier()?; // the peer has read the value, too
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
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

impl<'job, T: Pod> PayloadSignal<'job, T> {
    /// Makes a payload signal for values of type `T`.
    ///
    /// All ranks must make their signals and payload signals in the same order, and with the same types. The call
    /// communicates nothing. What [`Job::signal`] says about the life and the number of signals holds.
    ///
    /// ```
    /// use tasuki::onesided::PayloadSignal;
    /// use tasuki::{Rank, Request};
    /// tasuki::local(2, |job| {
    ///     let ticks = PayloadSignal::<u32>::new(job)?; // on all ranks
    ///     if job.rank() == 0 {
    ///         ticks.writer(Rank(1))?.put(&7)?;
    ///     } else {
    ///         assert_eq!(ticks.reader(Some(Rank(0))).wait()?, 7);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(job: &'job Job) -> Result<PayloadSignal<'job, T>> {
        let index = job.next_signal("PayloadSignal::new()")?;
        let cell = job.worker.fabric().own_signal(index);
        let cell = cell.map_err(|cause| job.worker.fault(cause, || "PayloadSignal::new()".into()))?;
        Ok(PayloadSignal { job, index, cell, of: PhantomData })
    }

    /// Makes this rank the only writer of the payload signal of `to`. The program must ensure that there is only one:
    /// two writers would overwrite each other's payload, and the reader would find it torn or lost, though never
    /// unsafe.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::onesided::PayloadSignal;
    /// tasuki::local(3, |job| {
    ///     let signal = PayloadSignal::<usize>::new(job)?;
    ///     signal.writer(job.rank_after(1))?.put(&job.rank().index())?; // each rank has one writer
    ///     assert_eq!(job.rank_after(-1), signal.reader(None).wait()?);
    ///     assert!(signal.writer(tasuki::Rank(3)).is_err()); // there is no such rank
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn writer(&self, to: Rank) -> Result<PayloadWriter<'job, T>> {
        self.job.check_rank(to, "payload_signal.writer")?;
        let at = GlobalAddress::new(to, signal_offset(self.index));
        let line = self.job.worker.fabric().line(at);
        let line = line
            .map_err(|cause| self.job.worker.fault(cause, || format!("payload_signal.writer(rank {to})")))?;
        Ok(PayloadWriter { job: self.job, line, to, written: 0, of: PhantomData })
    }

    /// The reader of this rank's payload signal. `from` is the writer, if it is known: a wait then ends with an error
    /// when that rank leaves.
    ///
    /// Each reader begins with the first value that was ever put. So make one and keep it. One that is made after a
    /// second value was put gets [`Cause::Overwritten`](crate::engine::Cause::Overwritten), since the first value is gone.
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::onesided::PayloadSignal;
    /// tasuki::local(2, |job| {
    ///     let (signal, peer) = (PayloadSignal::<u64>::new(job)?, job.rank_after(1));
    ///     let mut reader = signal.reader(Some(peer)); // a wait ends if the peer leaves
    ///     signal.writer(peer)?.put(&(10 + job.rank().index() as u64))?;
    ///     assert_eq!(reader.wait()?, 10 + peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn reader(&self, from: Option<Rank>) -> PayloadReader<'job, T> {
        let (awaited, of) = (AwaitedCondition::default(), PhantomData);
        PayloadReader { job: self.job, cell: self.cell, index: self.index, from, read: 0, awaited, of }
    }
}

impl<T: Pod> PayloadWriter<'_, T> {
    /// Writes a value and raises the counter by one.
    ///
    /// The reader must have read the value before; there is no buffer. Never waits on mapped memory; otherwise waits
    /// until the fabric has room. Errors: a rank died, or the job is over; where it waits, the time limit of the rank
    /// ([`Job::set_timeout`](crate::Job::set_timeout)). Cost: the stores of one cache line.
    ///
    /// ```
    /// use tasuki::onesided::PayloadSignal;
    /// use tasuki::{Rank, Request};
    /// tasuki::local(2, |job| {
    ///     let (there, back) = (PayloadSignal::<u64>::new(job)?, PayloadSignal::<u64>::new(job)?);
    ///     let peer = job.rank_after(1);
    ///     if job.rank() == 0 {
    ///         let (mut writer, mut answers) = (there.writer(peer)?, back.reader(Some(peer)));
    ///         for value in 1..4 {
    ///             writer.put(&value)?;
    ///             assert_eq!(answers.wait()?, value * value); // so it was read, and the next may follow
    ///         }
    ///     } else {
    ///         let (mut values, mut writer) = (there.reader(Some(peer)), back.writer(peer)?);
    ///         for _ in 1..4 {
    ///             let value = values.wait()?;
    ///             writer.put(&(value * value))?;
    ///         }
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)] // the value goes from a register into the cache line
    pub fn put(&mut self, value: &T) -> Result<()> {
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
        let call = || format!("payload signal {}: value {next}", self.index);
        self.job.worker.fault(Cause::Overwritten, call)
    }
}
