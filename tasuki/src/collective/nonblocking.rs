//! Collective calls that are begun and waited for later; also as futures.
//!
//! All members begin them in the same order, one thread of each at a time, whatever other collective calls, messages
//! and plans they make in between; they may wait for them in any order, and need not in the same. They meet nothing but
//! each other. [`Communicator::iallreduce`] says what holds for all of them.

use crate::reduction::reduce_op::ReduceOp;
use crate::{Communicator, Pod, Rank, Result};
use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};
use tasuki_collective::{Combiner, StartedCollective};

/// A collective call that was begun. [`Collective::wait`] or `.await` gives what it comes to. Dropping it ends nothing:
/// this member's part goes on in later waiting calls of the rank, so that the others get theirs.
#[must_use = "the result comes from wait()"]
#[derive(Debug)]
pub struct CollectiveRequest<R>(pub(crate) StartedCollective<R>);

impl<R> CollectiveRequest<R> {
    /// Whether it is over on this member. Never waits. Moves it on, and other work of the rank's.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until it is over on this member, and gives its result. Moves other work of the rank's on meanwhile.
    pub fn wait(self) -> Result<R> {
        self.0.wait()
    }
}

impl<R> Future for CollectiveRequest<R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.0.poll(task.waker())
    }
}

/// What combines values, on whichever thread.
fn combiner<T: Pod>(operation: impl ReduceOp<T> + Send + 'static) -> Combiner<T> {
    Box::new(move |left, right| operation.combine(left, right))
}

impl Communicator {
    /// Begins a barrier: over when all members have begun it.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) rounds of a message. [`Communicator::fuzzy_barrier`] goes on
    /// while members compute.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let all_here = job.world().ibarrier()?;
    ///     let sum: u64 = (0..1000).sum();                        // work that needs no other rank
    ///     all_here.wait()?;
    ///     assert_eq!(sum, 499_500);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ibarrier(&self) -> Result<CollectiveRequest<()>> {
        self.inner().start_barrier().map(CollectiveRequest)
    }

    /// Begins a broadcast: gives the root's values; `values` are as many on each member.
    ///
    /// As [`Communicator::iallreduce`]; the root's part is over before all members have the values. Costs ceil(log2 P)
    /// messages one after the other.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let mine = vec![job.rank().0; 100];
    ///     let (first, last) = (job.world().ibcast(mine.clone(), Rank(0))?, job.world().ibcast(mine, Rank(2))?);
    ///     // Under any executor; here one for a single future.
    ///     let both = pollster::block_on(async { Ok::<_, tasuki::Error>((last.await?, first.await?)) })?;
    ///     assert_eq!(both, (vec![2; 100], vec![0; 100]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ibcast<T: Pod + Send>(&self, values: Vec<T>, root: Rank) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_bcast(values, root).map(CollectiveRequest)
    }

    /// Begins a reduction: gives all members' values, combined in their order, on the root; `None` elsewhere.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) messages one after the other, and one more to a root that is
    /// not the first member.
    pub fn ireduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
        root: Rank,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        self.inner().start_reduce(values, combiner(operation), root).map(CollectiveRequest)
    }

    /// Begins a reduction: gives all members' values, combined in the order of members; the same to the bit on each.
    ///
    /// Collective: all members begin it, and all calls of this file, in the same order, one thread of each at a time;
    /// blocking collective calls and plans may stand anywhere between. As many values on each member. The call owns
    /// them until it is over; what it comes to is a vector of its own.
    ///
    /// Does not wait, but to find the slots of pairs that have none yet. Goes on whenever a thread of the rank is in a
    /// call that waits, for whatever that is, or asks ([`Collective::is_finished`]), or while a future of a message or
    /// collective call is awaited; not while all compute, so a member in the middle of a tree holds up those below. The
    /// operation need not commute, and is called on whichever of those threads, also by the call that begins
    /// this; where it panics, that call does.
    ///
    /// Up to 64 may be under way on a communicator: one more is an error that has begun nothing
    /// ([`Cause::Full`](crate::Cause::Full)); wait for the oldest, and begin it again. Errors at once: there is no such
    /// root, or `values` are not as many as they must be. Errors later: members disagree about the number of bytes
    /// (some then find out by others leaving); a member died, or left before its part was over. One that drops this
    /// and leaves before that may be told of messages that were not taken, as with a send. After an error, or a panic
    /// of the operation, other members may be in the middle, and wait until this one leaves: use the communicator for
    /// no more of these.
    ///
    /// Costs a reduction to the first member and a broadcast: 2 ceil(log2 P) messages one after the other; a few
    /// copies of the values on the heap, and once 8 KiB or so for the slots of each pair that exchange messages.
    ///
    /// ```
    /// use tasuki::Sum;
    /// tasuki::local(4, |job| {
    ///     let (mut x, mut norm) = (vec![1.0_f64; 100], 0.0);
    ///     for _ in 0..3 {
    ///         let square: f64 = x.iter().map(|x| x * x).sum();
    ///         let total = job.world().iallreduce(vec![square], Sum)?;
    ///         let next: Vec<f64> = x.iter().map(|x| x / 2.0).collect();   // work that does not need it
    ///         norm = total.wait()?[0].sqrt();
    ///         x = next;
    ///     }
    ///     assert_eq!(norm, 5.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iallreduce<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allreduce(values, combiner(operation)).map(CollectiveRequest)
    }

    /// Begins a gather: gives all members' values one behind the other, on the root; `None` elsewhere.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) messages one after the other, and memory for what passes
    /// through a member.
    pub fn igather<T: Pod + Send>(
        &self,
        values: Vec<T>,
        root: Rank,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        self.inner().start_gather(values, root).map(CollectiveRequest)
    }

    /// Begins a scatter: gives this member's block of the root's values, which are as many blocks of `count` values as
    /// there are members; `values` are not looked at elsewhere.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) messages one after the other, and memory for what passes
    /// through a member.
    pub fn iscatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_scatter(values, count, root).map(CollectiveRequest)
    }

    /// Begins a gather to all: gives all members' values one behind the other.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) rounds of a message.
    pub fn iallgather<T: Pod + Send>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_allgather(values).map(CollectiveRequest)
    }

    /// Begins an exchange of blocks: gives a block from each member, in their order; `values` are as many blocks of
    /// this member's for all of them.
    ///
    /// As [`Communicator::iallreduce`]. Costs a message to each member, all at once.
    pub fn ialltoall<T: Pod + Send>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_alltoall(values).map(CollectiveRequest)
    }

    /// Begins a reduction that gives this member's block of what all members' values come to, combined in their order;
    /// `values` are as many blocks as there are members.
    ///
    /// As [`Communicator::iallreduce`]. Costs a message to each member, all at once.
    pub fn ireduce_scatter<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_reduce_scatter(values, combiner(operation)).map(CollectiveRequest)
    }

    /// Begins a scan: gives what the values of the members up to this one come to, combined in their order.
    ///
    /// As [`Communicator::iallreduce`]. Costs ceil(log2 P) rounds of a message.
    pub fn iscan<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.inner().start_scan(values, combiner(operation)).map(CollectiveRequest)
    }

    /// The same of the members before this one; `None` on the first one.
    pub fn iexscan<T: Pod + Send>(
        &self,
        values: Vec<T>,
        operation: impl ReduceOp<T> + Send + 'static,
    ) -> Result<CollectiveRequest<Option<Vec<T>>>> {
        self.inner().start_exscan(values, combiner(operation)).map(CollectiveRequest)
    }
}
