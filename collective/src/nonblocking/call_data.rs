//! The data of a nonblocking call that has one of the [kinds](CollectiveKind) of collectives: its buffers, and how it
//! runs by messages or by compiled steps.

use crate::call_kind::CallKind;
use crate::message_algorithms::gather::{allgather, gather, scatter};
use crate::message_algorithms::{Peers, alltoall, barrier, bcast, reduce, scan};
use crate::nonblocking::channel::CallChannel;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use std::any::Any;
use std::pin::Pin;
use tasuki_core::base::Result;
use tasuki_core::engine::executor::CallBuffers;
use tasuki_core::queue::reduction::{BoxedOperation, ReduceOperation};
use tasuki_schedule::shape::CollectiveKind;

/// The buffers of a call, and the operation that combines values.
pub(super) struct CallData<T> {
    kind: CallKind,
    /// This member's place.
    place: usize,
    /// The values that the call reads or writes.
    pub(super) values: Vec<T>,
    /// The result, where it has a buffer of its own: in an alltoall, a reduce_scatter, and at the root of a scatter.
    pub(super) result: Vec<T>,
    operation: BoxedOperation,
}

/// The steps of a call by messages.
pub(super) type MessageSteps<'d> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'd>>;

/// The data of a call with values of any type.
pub(super) trait AnyCallData: Send {
    /// Calls `run` with its buffers, for steps of compiled schedules.
    fn with_buffers(&mut self, run: &mut dyn FnMut(&CallBuffers<'_>));

    /// Runs the call by messages.
    fn by_messages<'d>(&'d mut self, peers: &'d CallChannel) -> MessageSteps<'d>;

    /// Returns the [`CallData`].
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Pod> CallData<T> {
    pub(super) fn new(kind: CallKind, place: usize, values: Vec<T>) -> CallData<T> {
        CallData { kind, place, values, result: Vec::new(), operation: ReduceOperation::Nothing }
    }

    /// Adds the buffer of a result that has its own.
    pub(super) fn with_room(self, result: Vec<T>) -> CallData<T> {
        CallData { result, ..self }
    }

    pub(super) fn combined(self, operation: BoxedOperation) -> CallData<T> {
        CallData { operation, ..self }
    }

    pub(super) fn kind(&self) -> &CallKind {
        &self.kind
    }

    pub(super) fn is_root(&self) -> bool {
        self.place == self.kind.root
    }

    pub(super) fn is_first(&self) -> bool {
        self.place == 0
    }

    /// Returns this member's block of the values, in the buffer of the result.
    pub(super) fn into_own_block(mut self) -> Vec<T> {
        let count = self.result.len();
        self.result.copy_from_slice(&self.values[self.place * count..][..count]);
        self.result
    }
}

impl<T: Pod + Send + Sync> AnyCallData for CallData<T> {
    fn with_buffers(&mut self, run: &mut dyn FnMut(&CallBuffers<'_>)) {
        let CallData { kind, values, result, operation, .. } = self;
        let values = cast_slice_mut(values);
        match kind.collective {
            CollectiveKind::Alltoall => run(&CallBuffers::between(values, cast_slice_mut(result))),
            _ => run(&CallBuffers::combined(values, operation.borrow(|operator| &**operator))),
        }
    }

    fn by_messages<'d>(&'d mut self, peers: &'d CallChannel) -> MessageSteps<'d> {
        let (root, is_root, place) = (self.kind.root, self.is_root(), self.place);
        let CallData { kind, values, result, operation, .. } = self;
        // The steps own the operation: only so may they move from thread to thread with it.
        let operation = std::mem::replace(operation, ReduceOperation::Nothing);
        Box::pin(async move {
            match kind.collective {
                CollectiveKind::Barrier => barrier::barrier(peers).await,
                CollectiveKind::Bcast => bcast::bcast(peers, cast_slice_mut(values), root).await,
                CollectiveKind::Reduce if is_root => reduce::reduce_here(peers, values, operation).await,
                CollectiveKind::Reduce => reduce::reduce_to(peers, values, operation, root).await,
                CollectiveKind::Allreduce => reduce::allreduce(peers, values, operation).await,
                CollectiveKind::Gather if is_root => {
                    let count = values.len() / peers.size();
                    let own = values[place * count..][..count].to_vec();
                    if let Some(all) = gather(peers, &own, root).await? {
                        *values = all;
                    }
                    Ok(())
                }
                CollectiveKind::Gather => gather(peers, values, root).await.map(drop),
                CollectiveKind::Scatter if is_root => scatter(peers, cast_slice(values)).await,
                CollectiveKind::Scatter => peers.recv(cast_slice_mut(values), root).await,
                CollectiveKind::Allgather => {
                    let count = values.len() / peers.size();
                    let own = values[place * count..][..count].to_vec();
                    allgather(peers, cast_slice(&own), cast_slice_mut(values)).await
                }
                CollectiveKind::Alltoall => {
                    alltoall::alltoall(peers, cast_slice(values), cast_slice_mut(result)).await
                }
                CollectiveKind::ReduceScatter => {
                    let block = reduce::reduce_scatter(peers, values, operation).await?;
                    values[place * block.len()..][..block.len()].copy_from_slice(&block);
                    Ok(())
                }
                CollectiveKind::Scan => scan::scan(peers, values, true, operation).await,
                CollectiveKind::Exscan => scan::scan(peers, values, false, operation).await,
                CollectiveKind::Neighbours => Ok(()), // has calls of its own
            }
        })
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
