//! The signal of a particular rank, as other ranks use it.

use crate::Rank;
use crate::command::Effect;
use crate::data::single_value_data;
use crate::onesided::GlobalAddress;

/// The signal of a particular rank, as other ranks raise it: 8 bytes, which may be sent to any rank.
///
/// ```
/// use tasuki::Rank;
/// use tasuki::onesided::RemoteSignal;
/// tasuki::local(3, |job| {
///     let count = job.signal()?;
///     let mut whom: RemoteSignal = count.on(job.rank());
///     job.world().bcast(&mut whom, Rank(1))?; // rank 1 says which signal it waits for
///     job.raise(whom, 1)?;
///     if job.rank() == 1 {
///         count.wait_at_least(3)?;
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct RemoteSignal(pub(crate) GlobalAddress);

impl RemoteSignal {
    /// An effect of a command: when the command has succeeded, this signal is raised by `amount`, at most 2^32 - 1.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, ready) = (job.queue(4)?, job.signal()?);
    ///     queue.post(Command::nothing().then(ready.on(job.rank_after(1)).add(5)))?;
    ///     ready.wait_at_least(5)?;
    ///     assert_eq!(ready.value(), 5);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[allow(clippy::should_implement_trait)] // it describes an effect and adds nothing itself
    pub fn add(self, amount: u32) -> Effect {
        Effect(tasuki_core::queue::command::Effect { signal: self.0, amount })
    }

    /// The rank whose signal it is.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let arrived = job.signal()?;
    ///     let raised_at = arrived.on(job.rank_after(1));
    ///     assert_eq!(raised_at.rank(), job.rank_after(1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank(self) -> Rank {
        self.0.rank()
    }
}

single_value_data! { [] RemoteSignal; }
