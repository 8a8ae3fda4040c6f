//! Signals: counters that only grow, raised by anyone, awaited by their owner.

use crate::command::{Effect, Trigger};
use crate::job::Job;
use crate::{GlobalAddress, GlobalPtr, Pod, Rank, Result};
use std::time::Duration;
use tasuki_core::engine::Condition;
use tasuki_core::fabric::SignalCell;
use tasuki_core::segment::layout::signal_offset;

/// A 64-bit counter on every rank, which others raise and this rank waits for. Made by [`Job::signal`].
///
/// Counting wraps; a wait compares by signed difference, so thresholds may run on for ever.
///
/// ```
/// tasuki::local(3, |job| {
///     let ready = job.signal()?;
///     job.ranks().try_for_each(|rank| job.raise(ready.on(rank), 1))?;
///     ready.wait_at_least(3) // everybody, oneself included, has raised it
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signal<'job> {
    job: &'job Job,
    index: u32,
    cell: SignalCell,
}

/// A signal of some rank, as others raise it: 8 bytes, may be sent to anyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct RemoteSignal(pub(crate) GlobalAddress);

impl RemoteSignal {
    /// As an effect: it is raised by `amount`, at most 2^32 - 1, when a command has ended well.
    #[allow(clippy::should_implement_trait)] // it says what is to happen, and adds nothing itself
    pub fn add(self, amount: u32) -> Effect {
        Effect(tasuki_core::queue::command::Effect { signal: self.0, amount })
    }

    /// Whose signal it is.
    pub fn rank(self) -> Rank {
        self.0.rank()
    }
}

impl<'job> Signal<'job> {
    pub(crate) fn new(job: &'job Job, index: u32) -> Result<Signal<'job>> {
        let cell = job.worker.fabric().own_signal(index);
        let cell = cell.map_err(|cause| job.worker.fault(cause, || "signal()".into()))?;
        Ok(Signal { job, index, cell })
    }

    /// The signal as `rank` has it, to be raised.
    #[inline]
    pub fn on(&self, rank: Rank) -> RemoteSignal {
        RemoteSignal(GlobalAddress::new(rank, signal_offset(self.index)))
    }

    /// How far this rank's counter has come. Bytes put before a raise that is seen are visible. It goes on when the
    /// signal is poisoned: that is told by [`Signal::wait_at_least`] and [`Signal::wait_timeout`], not here.
    #[inline]
    pub fn value(&self) -> u64 {
        self.job.worker.height(&self.cell)
    }

    /// Waits until this rank's counter has reached `threshold`; bytes that were put with the raises that make it up
    /// are visible then.
    ///
    /// A count does not say *which* puts have arrived: of two that raise the same signal, the later may be seen
    /// first. Where several may be under way and that matters, give each a signal of its own (for a double buffer:
    /// one per place).
    ///
    /// Serves peers and moves this rank's own operations and command queues on meanwhile. Errors: a rank died, or all
    /// others left; a command that was to raise it failed, before it had come that far
    /// ([`Cause::Poisoned`](crate::Cause::Poisoned)).
    /// Costs nothing but the hand-over of a line when the signal is on its way; sleeps when it takes long.
    #[inline]
    pub fn wait_at_least(&self, threshold: u64) -> Result<()> {
        self.wait_in_call(threshold, &|| self.call(threshold))
    }

    /// The same, for at most `limit`; then an error for which [`Error::is_timeout`](crate::Error::is_timeout)
    /// holds. The signal is not changed by it.
    pub fn wait_timeout(&self, threshold: u64, limit: Duration) -> Result<()> {
        let condition = Condition::Signal(self.cell, threshold, None);
        self.job.worker.wait(&condition, Some(limit), &|| self.call(threshold))
    }

    /// As a trigger: a command fires when this counter, of the rank whose queue it is posted to, has reached
    /// `threshold`; at once if it has already.
    pub fn reaches(&self, threshold: u64) -> Trigger {
        Trigger::new(self.job, self.index, threshold)
    }

    /// As [`Signal::wait_at_least`], for a call of that name.
    #[inline]
    pub(crate) fn wait_in_call(&self, threshold: u64, call: &dyn Fn() -> String) -> Result<()> {
        self.job.worker.wait_signal(self.cell, threshold, None, None, call)
    }

    /// Whether the counter has come that far. Moves the rank's work on; never waits. For a call of that name.
    pub(crate) fn test(&self, threshold: u64, call: &dyn Fn() -> String) -> Result<bool> {
        self.job.worker.test(&Condition::Signal(self.cell, threshold, None), call)
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn job(&self) -> &'job Job {
        self.job
    }

    fn call(&self, threshold: u64) -> String {
        format!("wait(signal {} >= {threshold})", self.index)
    }
}

impl Job {
    /// Copies `values` to `to` and then raises `signal`, which must belong to the same rank, by `amount`.
    ///
    /// When it returns `values` may be used again; when this raise of the signal is seen, the values are at their
    /// place. Two calls are not ordered among each other, not even to one rank: see [`Signal::wait_at_least`]. Errors:
    /// as for [`Job::put`], and signal and data of different ranks. Costs one copy and one atomic addition.
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
    pub fn put_signal<T: Pod>(
        &self,
        to: GlobalPtr<T>,
        values: &[T],
        signal: RemoteSignal,
        amount: u64,
    ) -> Result<()> {
        self.worker.put_signal(to.address(), bytemuck::cast_slice(values), signal.0, amount)
    }

    /// Raises a signal by `amount`.
    #[inline]
    pub fn raise(&self, signal: RemoteSignal, amount: u64) -> Result<()> {
        self.worker.raise(signal.0, amount)
    }
}
