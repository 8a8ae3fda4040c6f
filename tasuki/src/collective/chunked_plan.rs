//! Chunked plans: each start takes any number of values, which pass through the plan's own buffers chunk by chunk.

use crate::request::{Request, finish_limited, future_by_request};
use crate::{Plan, Pod, Result};
use std::fmt;
use std::task::{self, Poll};
use tasuki_collective::ChunkedRun;
use tasuki_core::engine::AwaitedCondition;

/// A plan whose starts take any number of values of the program. Made by [`Plan::chunked`] from a plan with equal
/// blocks.
///
/// The plan has blocks of `count` values. A start may use blocks of any number of values, the same number on all
/// members. They pass through the plan's buffers in chunks of `count` values, one chunk after the other. The
/// program's values have the layout of the plan's buffer, with their own number in place of `count`. The result
/// replaces them, also for operations such as an exchange whose plan has a separate result buffer; the vector then
/// needs room for the larger of the two.
///
/// [`start`](ChunkedPlan::start) takes a vector, and [`wait`](Request::wait) returns it with the result.
/// [`Scope::start`](crate::Scope::start) borrows a slice within a scope, [`run`](ChunkedPlan::run) for the time of
/// the call. The first chunk goes on while the program computes. A later chunk begins when any call of the rank
/// waits. Members may start different plans, and wait for them, in different orders. If the plan is dropped during a
/// start, the start goes on in later calls of the rank until the rank leaves, because other members wait for it.
///
/// ```
/// use tasuki::{Rank, Request};
/// tasuki::local(3, |job| {
///     let mut values = job.world().bcast_init::<u16>(100, Rank(2))?.chunked()?;
///     for length in [1, 100, 12_345] {
///         let own = if job.rank() == 2 { vec![7; length] } else { vec![0; length] };
///         values.start(own)?;
///         let inner: u64 = (0..1000).sum();                  // work that does not need the values
///         assert_eq!((values.wait()?, inner), (vec![7; length], 499_500));
///     }
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Errors of a wait: those of a wait for [`Plan`]; no start is active. After an error of the first kind the plan cannot
/// be used any more.
///
/// # Cancel safety
///
/// Dropping a future of a wait, `&mut plan`, changes nothing.
///
/// Source: the buffered collectives of the ACP library (Honda et al.).
pub struct ChunkedPlan<T: Pod + Send> {
    run: ChunkedRun<T>,
    awaited: AwaitedCondition,
}

impl<T: Pod + Send> fmt::Debug for ChunkedPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.fmt(f)
    }
}

impl<T: Pod + Send> Plan<T> {
    /// Turns this plan into one whose starts take any number of values, which pass through this plan's buffers: the
    /// larger the buffers, the fewer the chunks. Not collective, but all members do it: a start of a plan that is not
    /// chunked is another call than a chunk.
    ///
    /// Errors: the blocks differ in length or are empty; the plan was made from the program's own schedule; a start
    /// is active.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(2, |job| {
    ///     let mut sum = job.world().allreduce_init::<u64>(8, Sum)?.chunked()?; // eight values at a time
    ///     let mut values = vec![job.rank().index() as u64; 1000];
    ///     sum.run(&mut values)?;
    ///     assert_eq!(values, [1; 1000]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn chunked(self) -> Result<ChunkedPlan<T>> {
        let (plan, chunk_shape) = self.into_parts();
        if plan.is_active() {
            return Err(plan.start_active("chunked"));
        }
        match chunk_shape {
            Some(chunk_shape) => Ok(ChunkedPlan {
                run: ChunkedRun::new(plan, chunk_shape),
                awaited: AwaitedCondition::default(),
            }),
            None => {
                let text = "only a plan of the library with equal blocks that are not empty can be chunked";
                Err(plan.refused("chunked", text))
            }
        }
    }
}

impl<T: Pod + Send> ChunkedPlan<T> {
    /// Starts the plan with these values, which form as many blocks as the plan has. Returns at once.
    ///
    /// Members must pass blocks of the same number of values: otherwise a member that receives anything gets an error in
    /// the wait, and the communicator fails. If members do not reach each other's memory, or are more than 32, the
    /// numbers are not compared: a member with more chunks waits until the others start again or leave. Errors: the values do not form that number of blocks; the previous start has
    /// not been waited for; the job is over. Cost: a copy of the first chunk, and a start of the plan.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(2, |job| {
    ///     let mut bcast = job.world().bcast_init::<u8>(16, Rank(0))?.chunked()?;
    ///     bcast.start(vec![1 - job.rank().index() as u8; 100])?;
    ///     assert!(bcast.start(vec![0; 100]).is_err()); // the first start was not waited for
    ///     assert_eq!(bcast.wait()?, [1; 100]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn start(&mut self, values: Vec<T>) -> Result<()> {
        self.run.start(values)
    }

    /// Starts the plan with these values and returns when they are the result. Cost: one more copy of the values.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let mut bcast = job.world().bcast_init::<u8>(16, Rank(0))?.chunked()?;
    ///     let mut text = if job.rank() == 0 { *b"more than sixteen bytes" } else { [0; 23] };
    ///     bcast.run(&mut text)?;
    ///     assert_eq!(&text, b"more than sixteen bytes");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn run(&mut self, values: &mut [T]) -> Result<()> {
        self.run.start(values.to_vec())?;
        self.finish_into(values)
    }

    /// Returns true if a start has not been waited for.
    ///
    /// ```
    /// use tasuki::{Rank, Request};
    /// tasuki::local(2, |job| {
    ///     let mut bcast = job.world().bcast_init::<u8>(16, Rank(0))?.chunked()?;
    ///     bcast.start(vec![0; 100])?;
    ///     assert!(bcast.is_active());
    ///     bcast.wait()?;
    ///     assert!(!bcast.is_active());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn is_active(&self) -> bool {
        self.run.is_active()
    }

    /// Waits, and copies the result into `values`.
    pub(crate) fn finish_into(&mut self, values: &mut [T]) -> Result<()> {
        let got = Request::wait(self)?;
        values[..got.len()].copy_from_slice(&got);
        Ok(())
    }
}

impl<T: Pod + Send> Request for ChunkedPlan<T> {
    type Value = Vec<T>;

    fn test(&mut self) -> bool {
        self.run.test()
    }

    fn wait(&mut self) -> Result<Vec<T>> {
        if self.run.has_limit() {
            finish_limited(self)?;
        }
        self.run.wait()
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.run.poll(context.waker(), &mut self.awaited)
    }
}

future_by_request!([T: Pod + Send] ChunkedPlan<T>);
