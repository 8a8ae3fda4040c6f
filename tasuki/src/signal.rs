//! Signals: counters that only grow. Any rank raises them, their owner waits for them.

use crate::collective::Data;
use crate::job::Job;
use crate::onesided::GlobalAddress;
use crate::remote_signal::RemoteSignal;
use crate::trigger::{Trigger, wait_call};
use crate::{Error, GlobalPtr, Pod, Rank, Result};
use tasuki_core::base::Cause;
use tasuki_core::engine::Condition;
use tasuki_core::fabric::SignalCell;
use tasuki_core::segment::layout::signal_offset;

/// A 64-bit counter on every rank, which other ranks raise and this rank waits for. Made by [`Job::signal`].
///
/// The counter wraps. A wait compares by signed difference, so thresholds may grow without end, and one raise adds less
/// than 2^63.
///
/// ```
/// tasuki::local(3, |job| {
///     let ready = job.signal()?;
///     job.ranks().try_for_each(|rank| job.raise(ready.on(rank), 1))?;
///     ready.wait_at_least(3) // all three ranks, this one included, have raised it
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signal<'job> {
    job: &'job Job,
    index: u32,
    cell: SignalCell,
}

impl<'job> Signal<'job> {
    pub(crate) fn new(job: &'job Job, index: u32) -> Result<Signal<'job>> {
        let cell = job.worker.fabric().own_signal(index);
        let cell = cell.map_err(|cause| job.worker.fault(cause, || "signal()".into()))?;
        Ok(Signal { job, index, cell })
    }

    /// The signal of `rank`, to be raised.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let arrived = job.signal()?;
    ///     for rank in job.ranks() {
    ///         job.raise(arrived.on(rank), 1)?;
    ///     }
    ///     arrived.wait_at_least(3)?; // all ranks have come
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn on(&self, rank: Rank) -> RemoteSignal {
        RemoteSignal(GlobalAddress::new(rank, signal_offset(self.index)))
    }

    /// The value of this rank's counter. Data put before a raise are visible to a rank that observes the raise. A
    /// poisoned signal still counts; only waits report that it is poisoned.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let (data, arrived) = (job.alloc::<u64>(1)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     job.put_signal(data.on(peer), &[7], arrived.on(peer), 1)?;
    ///     while arrived.value() == 0 {
    ///         std::thread::yield_now(); // or a part of the program's work
    ///     }
    ///     assert_eq!(data.get(0)?, 7);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> u64 {
        self.job.worker.signal_value(&self.cell)
    }

    /// Waits until this rank's counter has reached `threshold`. Data that were put with the raises that make up this
    /// count are visible when it returns.
    ///
    /// A count does not say *which* puts have arrived: of two puts that raise the same signal, the later may be
    /// observed first. If several may be in flight and that matters, give each put a signal of its own (for a double
    /// buffer, one signal for each half).
    ///
    /// Meanwhile the call serves peers and moves this rank's operations and command queues on. Errors: a rank died, or
    /// all other ranks left; a command that should have raised the signal failed before the counter reached the
    /// threshold ([`Cause::Poisoned`](crate::engine::Cause::Poisoned)). Cost: the transfer of one cache line when the
    /// raise is about to arrive; a long wait sleeps.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let (rows, arrived) = (job.alloc::<u64>(3)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     for row in 0..3 {
    ///         job.put_signal(rows.on(peer).at(row), &[row as u64 + 5], arrived.on(peer), 1)?;
    ///     }
    ///     arrived.wait_at_least(3)?; // all three are here
    ///     assert_eq!(rows.to_vec()?, [5, 6, 7]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn wait_at_least(&self, threshold: u64) -> Result<()> {
        self.wait_in_call(threshold, &|| wait_call(self.index, threshold))
    }

    /// The moment when this rank's counter has reached `threshold`: a request to wait for, and a trigger of commands.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::Request;
    /// tasuki::local(2, |job| {
    ///     let ready = job.signal()?;
    ///     let mut raised = ready.reaches(1);
    ///     assert!(raised.wait_timeout(Duration::from_micros(50))?.is_none());
    ///     job.barrier()?;
    ///     job.raise(ready.on(job.rank_after(1)), 1)?;
    ///     tasuki::block_on(raised)
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn reaches(&self, threshold: u64) -> Trigger<'job> {
        Trigger::new(&self.job.worker, (self.index, self.cell), threshold)
    }

    /// Waits like [`Signal::wait_at_least`], on behalf of the call with that name.
    #[inline]
    pub(crate) fn wait_in_call(&self, threshold: u64, call: &dyn Fn() -> String) -> Result<()> {
        match self.job.limited() {
            None => self.job.worker.wait_signal(self.cell, threshold, None, call),
            Some(_limit) => self.job.worker.wait_signal(self.cell, threshold, None, call),
        }
    }

    /// The condition that the counter has reached `threshold`.
    pub(crate) fn condition(&self, threshold: u64) -> Condition {
        Condition::Signal(self.cell, threshold, None)
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn job(&self) -> &'job Job {
        self.job
    }
}

impl Job {
    /// Copies `values` to `to` and then raises `signal`, which must belong to the same rank, by `amount`.
    ///
    /// `values` may be reused when the call returns. A rank that observes this raise sees the values in place. Two
    /// calls are not ordered with each other, not even to the same rank: see [`Signal::wait_at_least`]. Errors: those
    /// of [`Job::put`] and [`Job::raise`]; signal and data belong to different ranks. Cost: one copy and one atomic addition.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let (inbox, arrived) = (job.alloc::<f64>(3)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     job.put_signal(inbox.on(peer), &[1.0, 2.0, 3.0], arrived.on(peer), 1)?;
    ///     arrived.wait_at_least(1)?;
    ///     assert_eq!(inbox.to_vec()?, [1.0, 2.0, 3.0]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn put_signal<T: Pod, D: Data<Value = T> + ?Sized>(
        &self,
        to: GlobalPtr<T>,
        values: &D,
        signal: RemoteSignal,
        amount: u64,
    ) -> Result<()> {
        self.check_amount(signal, amount, "put_signal")?;
        self.worker.put_signal(to.address(), bytemuck::cast_slice(values.values()), signal.0, amount)
    }

    /// Raises a signal by `amount`, less than 2^63: by more, waits would take the counter for lower than before. Errors:
    /// the amount is too large; the signal's address is invalid; a rank died. Cost: one atomic addition.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let ready = job.signal()?;
    ///     if job.rank() != 0 {
    ///         job.raise(ready.on(Rank(0)), 1)?;
    ///     } else {
    ///         ready.wait_at_least(2)?; // both others are ready
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn raise(&self, signal: RemoteSignal, amount: u64) -> Result<()> {
        self.check_amount(signal, amount, "raise")?;
        self.worker.raise(signal.0, amount)
    }

    #[inline(always)]
    fn check_amount(&self, signal: RemoteSignal, amount: u64, call: &str) -> Result<()> {
        if amount as i64 >= 0 { Ok(()) } else { Err(self.too_much(signal, amount, call)) }
    }

    #[cold]
    fn too_much(&self, signal: RemoteSignal, amount: u64, call: &str) -> Error {
        let to = signal.0.rank();
        let text = format!("a signal is raised by less than 2^63 at a time, and {amount} is more");
        self.worker
            .fault(Cause::Argument(text), || format!("{call}(signal of rank {to})"))
            .with_peer(Some(to))
    }
}
