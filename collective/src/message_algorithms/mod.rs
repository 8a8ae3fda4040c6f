//! The algorithms of collective calls that exchange messages: the first calls of a kind, and all calls that have no
//! compiled schedule.
//!
//! Each algorithm is written once, as an asynchronous function over [`Peers`]. A blocking call runs it over a channel
//! whose operations wait, so that its first poll completes it. A nonblocking call runs it as a task, which goes on
//! when a message arrives.
//!
//! ```text
//! barrier     dissemination                    reduce          reduce, allreduce, reduce_scatter
//! bcast       k-nomial tree                    scan            scan, exscan: up a tree and down again
//! gather      gather, scatter, allgather       block_exchange  blocks of different lengths, neighbours
//! alltoall    blocks of equal length           knomial_tree    the tree of bcast, gather, reduce and scan
//!                                              ordered_fold    the order in which values are combined
//! ```
//!
//! Two members that send to each other must both have posted their receives: an algorithm calls [`Peers::expect`]
//! before it sends to a member that may be sending to it.

pub(crate) mod alltoall;
pub(crate) mod barrier;
pub(crate) mod bcast;
pub(crate) mod block_exchange;
pub(crate) mod gather;
pub(crate) mod knomial_tree;
pub(crate) mod ordered_fold;
pub(crate) mod reduce;
pub(crate) mod scan;

use crate::failure::signature::{CallSignature, mismatch};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tasuki_core::base::{Cause, Error, Result};
use tasuki_core::engine::Worker;
use tasuki_message::SHORT_MAX;

/// One more than the number of members that a member sends to in one round. An additional message costs less than an
/// additional round.
pub(crate) const RADIX: usize = 8;

/// Bytes of a header.
pub(crate) const HEADER: usize = size_of::<u64>();
/// Most bytes of a step that fit in one line with their header.
pub(crate) const ONE_LINE_MAX: usize = SHORT_MAX - HEADER;
/// The members of a call, as one of them sees them. Members are named by their places.
pub(crate) trait Peers: Sync {
    /// Returns this member's place.
    fn place(&self) -> usize;

    /// Returns the number of members.
    fn size(&self) -> usize;

    /// Posts the receive of the next message from a member, which has `bytes` bytes. Not required; it lets the
    /// sender go on.
    fn expect(&self, bytes: usize, from: usize) -> Result<()>;

    /// Sends a message. When it is complete, `bytes` may be reused, but `to` may not have received them.
    fn send(&self, bytes: &[u8], to: usize) -> impl Future<Output = Result<()>> + Send;

    /// Receives the next message from a member, which must have the length of `into`.
    fn recv(&self, into: &mut [u8], from: usize) -> impl Future<Output = Result<()>> + Send;

    /// Sends to one member and receives from one, which may be the same member. Neither waits for the other.
    fn exchange(
        &self,
        bytes: &[u8],
        to: usize,
        into: &mut [u8],
        from: usize,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Returns true if a wait for this member keeps it from running now.
    fn shares_processor(&self, _member: usize) -> bool {
        false
    }

    /// Returns the worker of this rank.
    fn worker(&self) -> &Worker;

    /// Returns the member `steps` places after this one. Places wrap around.
    #[inline]
    fn after(&self, steps: usize) -> usize {
        let at = self.place() + steps;
        if at < self.size() { at } else { at - self.size() }
    }

    /// Returns the member `steps` places before this one. Places wrap around.
    #[inline]
    fn before(&self, steps: usize) -> usize {
        self.after(self.size() - steps)
    }
}

/// Returns the distances between a member and its partners in the round of `step`: 1 to 7 times `step`.
fn partners(size: usize, step: usize) -> impl Iterator<Item = usize> + Clone + Send {
    (1..RADIX).map(move |times| times * step).take_while(move |&at| at < size)
}

/// Runs an algorithm whose operations wait.
#[inline]
pub(crate) fn run_now<R>(algorithm: impl Future<Output = Result<R>>) -> Result<R> {
    match pin!(algorithm).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(Error::new(Cause::Bug("a blocking call has not waited".into()))),
    }
}

/// Returns the error that `member` is in another call, from the headers of its message and of this member's. The
/// caller adds the name of its call.
#[cold]
pub(crate) fn different_calls(worker: &Worker, theirs: u64, ours: u64, member: usize) -> Error {
    let [theirs, ours] = [theirs, ours].map(CallSignature::in_word);
    worker.fault(mismatch(member, theirs, ours), String::new)
}

/// Returns the error for a message whose length differs between this member and `member`.
#[cold]
pub(crate) fn disagree(worker: &Worker, one: u64, other: u64, member: usize) -> Error {
    worker.fault(Cause::bytes_differ(member, one, other), String::new)
}
