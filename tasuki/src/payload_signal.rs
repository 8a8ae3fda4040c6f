//! Payload signals: a counter with a few bytes beside it, transferred in one cache line.

use crate::job::Job;
use crate::onesided::GlobalAddress;
use crate::{Pod, Rank, Result};
use tasuki_core::base::Cause;
use tasuki_core::fabric::{LinePayload, Refused, SignalCell, SignalLine as CoreLine};
use tasuki_core::segment::layout::signal_offset;

/// On every rank a counter with 48 bytes of payload in its cache line. Each rank's counter has one writer and one
/// reader. Made by [`Job::payload_signal`].
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(2, |job| {
///     let signal = job.payload_signal()?;
///     let peer = Rank(1 - job.rank().0);
///     let (mut writer, mut reader) = (signal.writer(peer)?, signal.reader(Some(peer)));
///     for round in 0..10_u64 {
///         if job.rank() == Rank(0) {
///             writer.put(&[round, 7])?;
///             assert_eq!(reader.receive::<u64>()?, round + 7); // the reply says that the value was read
///         } else {
///             let [a, b] = reader.receive::<[u64; 2]>()?;
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

/// The reader of this rank's payload signal.
#[derive(Debug)]
pub struct PayloadReader<'job> {
    job: &'job Job,
    cell: SignalCell,
    index: u32,
    from: Option<Rank>,
    read: u64,
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

    /// The reader of this rank's payload signal. `from` is the writer, if it is known: a wait then ends with an error
    /// when that rank leaves.
    pub fn reader(&self, from: Option<Rank>) -> PayloadReader<'job> {
        PayloadReader { job: self.job, cell: self.cell, index: self.index, from, read: 0 }
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

impl PayloadReader<'_> {
    /// Waits for the next value.
    ///
    /// Errors: a rank died or the writer left; the writer wrote again before this value was read.
    #[inline]
    pub fn receive<T: Pod>(&mut self) -> Result<T> {
        let (next, cell) = (self.read.wrapping_add(1), self.cell); // both stay in registers after the wait
        let worker = &self.job.worker;
        worker.wait_signal(cell, next, self.from, None, &|| {
            format!("payload signal {}: value {next}", self.index)
        })?;
        match cell.read_payload(worker.fabric(), next) {
            Some(value) => {
                self.read = next;
                Ok(value)
            }
            None => Err(self.overrun(next)),
        }
    }

    #[cold]
    fn overrun(&self, next: u64) -> crate::Error {
        let text = "the writer wrote again before this value was read: reply to each value, or use several payload signals";
        self.job
            .worker
            .fault(Cause::Argument(text.into()), || format!("payload signal {}: value {next}", self.index))
    }
}
