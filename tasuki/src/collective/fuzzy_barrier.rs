//! Fuzzy barriers, as requests.

use crate::Result;
use crate::request::{Request, future_by_request};
use std::task::{self, Poll};
use tasuki_core::engine::AwaitedCondition;

/// A fuzzy barrier that this member has started. Made by
/// [`Communicator::fuzzy_barrier`](crate::Communicator::fuzzy_barrier).
///
/// It is complete when all members have started it. It may be waited for any number of times. Errors of a wait: a rank
/// died; a member left without having started it; the communicator has failed.
///
/// ```
/// use tasuki::Request;
/// tasuki::local(2, |job| {
///     let mut started = job.world().fuzzy_barrier()?;
///     let sum: u64 = (0..1000).sum(); // work that needs no other rank
///     started.wait()?;
///     assert!(started.test() && sum == 499_500); // it stays complete
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// # Cancel safety
///
/// Dropping it changes nothing: this member has started it, and it goes on.
#[derive(Clone, Debug)]
pub struct FuzzyBarrier {
    inner: tasuki_collective::FuzzyBarrier,
    awaited: AwaitedCondition,
}

impl FuzzyBarrier {
    pub(crate) fn new(inner: tasuki_collective::FuzzyBarrier) -> FuzzyBarrier {
        FuzzyBarrier { inner, awaited: AwaitedCondition::default() }
    }

    /// The number of the barrier on its communicator, from 1 on.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     for round in 1..=2 {
    ///         let mut barrier = job.world().fuzzy_barrier()?;
    ///         assert_eq!(barrier.instance(), round);
    ///         job.compute(std::time::Duration::from_micros(10)); // work that needs nothing from the others
    ///         barrier.wait()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn instance(&self) -> u64 {
        self.inner.instance()
    }
}

impl Request for FuzzyBarrier {
    type Value = ();

    #[inline]
    fn test(&mut self) -> bool {
        self.inner.test()
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        self.inner.wait()
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.inner.poll(context.waker(), &mut self.awaited)
    }
}

future_by_request!([] FuzzyBarrier);
