//! EncodedCommand: a counter with a few bytes beside it, handed over in one cache line.

use crate::job::Job;
use crate::{GlobalAddress, Pod, Rank, Result};
use tasuki_core::base::Cause;
use tasuki_core::fabric::{LinePayload, Refused, SignalCell, SignalLine as CoreLine};
use tasuki_core::segment::layout::signal_offset;

/// A counter with room for 48 bytes, on every rank. Each rank's line has one writer and one reader. Made by
/// [`Job::payload_signal`].
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(2, |job| {
///     let line = job.payload_signal()?;
///     let peer = Rank(1 - job.rank().0);
///     let (mut out, mut inn) = (line.writer(peer)?, line.reader(Some(peer)));
///     for round in 0..10_u64 {
///         if job.rank() == Rank(0) {
///             out.put(&[round, 7])?;
///             assert_eq!(inn.receive::<u64>()?, round + 7); // the answer says that the line is free again
///         } else {
///             let [a, b] = inn.receive::<[u64; 2]>()?;
///             out.put(&(a + b))?;
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

/// The one writer of some rank's line.
#[derive(Debug)]
pub struct PayloadWriter<'job> {
    job: &'job Job,
    line: CoreLine<'job>,
    to: Rank,
    written: u64,
}

/// The reader of this rank's line.
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
        let cell = cell.map_err(|cause| job.worker.fault(cause, || "line()".into()))?;
        Ok(PayloadSignal { job, index, cell })
    }

    /// This rank becomes the one writer of the line of `to`. That there is one only is the program's promise;
    /// two would overwrite each other's payload, and readers would find it torn or lost, never unsafe.
    pub fn writer(&self, to: Rank) -> Result<PayloadWriter<'job>> {
        self.job.check_rank(to, "line.writer")?;
        let at = GlobalAddress::new(to, signal_offset(self.index));
        let line = self.job.worker.fabric().line(at);
        let line =
            line.map_err(|cause| self.job.worker.fault(cause, || format!("line.writer(rank {to})")))?;
        Ok(PayloadWriter { job: self.job, line, to, written: 0 })
    }

    /// The reader of this rank's line, which is written by `from` if that is known: its leaving then ends a wait.
    pub fn reader(&self, from: Option<Rank>) -> PayloadReader<'job> {
        PayloadReader { job: self.job, cell: self.cell, index: self.index, from, read: 0 }
    }
}

impl PayloadWriter<'_> {
    /// Writes a value of at most 48 bytes (checked when compiled) and counts the line up.
    ///
    /// The reader must have read the value before: nothing is kept. Never waits on mapped memory; otherwise until
    /// the fabric has room. Costs the stores of one cache line.
    #[inline(always)] // the value goes from register to line
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
        self.job.worker.fault(cause, || format!("line.put(to rank {})", self.to))
    }

    #[cold]
    fn put_via(&self, payload: LinePayload) -> Result<()> {
        let CoreLine::Via(line) = self.line else { return Ok(()) };
        let worker = &self.job.worker;
        loop {
            match line.fabric.write_line(line.signal, payload, self.written) {
                Ok(()) => return Ok(()),
                Err(Refused::Again | Refused::Relay) => worker.relax("line.put")?,
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
        let (next, cell) = (self.read.wrapping_add(1), self.cell); // both in registers behind the wait
        let worker = &self.job.worker;
        worker.wait_signal(cell, next, self.from, None, &|| format!("line {}: value {next}", self.index))?;
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
        let text =
            "the writer wrote again before this value was read; answer each value, or use several lines";
        self.job.worker.fault(Cause::Argument(text.into()), || format!("line {}: value {next}", self.index))
    }
}
