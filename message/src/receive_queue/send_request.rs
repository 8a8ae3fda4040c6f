//! Sends to any-source queues that were begun.

use crate::context::Context;
use crate::receive_queue::deferred::{DeferredContent, DeferredMessage, MessageEnds};
use crate::receive_queue::drawn_message::Content;
use crate::receive_queue::offer::OfferedMessage;
use crate::receive_queue::sender::QueueAccess;
use std::sync::Arc;
use std::task::{Poll, Waker};
use tasuki_core::base::{Rank, Result, ValueKind};
use tasuki_core::engine::{Awaited, AwaitedCondition, Condition, RevocableBuffer};

/// A send to the any-source queue of a member that was begun. If it is dropped, it completes on its own.
#[derive(Debug)]
pub struct PendingSendAny {
    context: Arc<Context>,
    slot: u32,
    /// `None` if the message was written at once.
    deferred: Option<(Arc<QueueAccess>, Arc<DeferredMessage>)>,
    awaited: AwaitedCondition,
}

impl Context {
    /// Begins a send like [`Context::send_any`] of a message that a buffer of the receiver holds. The request keeps a
    /// copy of `bytes`, if it needs them. Returns `None`, having done nothing, if the message is longer.
    pub fn try_begin_send_any(
        self: &Arc<Self>,
        bytes: &[u8],
        to: Rank,
        slot: u32,
        kind: ValueKind,
    ) -> Result<Option<PendingSendAny>> {
        let (rank, label) = self.label_any("isend_any", to, slot, kind)?;
        let (call, mut opened) = (|| format!("isend_any(slot {slot} to rank {rank})"), None);
        let queue = self.any_source.queue_of(&self.progress, rank, &mut opened, &call)?;
        let access = &queue.access;
        if access.is_long(bytes.len()) {
            return Ok(None);
        }
        access.check_deferred(&call)?;
        let (mut message, has_room) = queue.draw(&self.worker, label, &call)?;
        if has_room && !access.deferred.waits_for_room() {
            match message.write(access, Content::Bytes(bytes)) {
                Ok(true) => return Ok(Some(self.pending_any(slot, None))),
                Ok(false) => {}
                Err(error) => {
                    access.defer(&self.progress, message, DeferredContent::Void);
                    return Err(error);
                }
            }
        }
        let message = access.defer(&self.progress, message, DeferredContent::Bytes(bytes.into()));
        Ok(Some(self.pending_any(slot, Some((access.clone(), message)))))
    }

    /// Begins a send like [`Context::send_any`] of a message that is longer than a buffer of the receiver. It stays in
    /// `from` until the receiver has fetched it.
    pub fn begin_send_any(
        self: &Arc<Self>,
        from: &Arc<RevocableBuffer>,
        to: Rank,
        slot: u32,
        kind: ValueKind,
    ) -> Result<PendingSendAny> {
        let (rank, label) = self.label_any("isend_any", to, slot, kind)?;
        let (call, mut opened) = (|| format!("isend_any(slot {slot} to rank {rank})"), None);
        let queue = self.any_source.queue_of(&self.progress, rank, &mut opened, &call)?;
        queue.access.check_deferred(&call)?;
        let offered = OfferedMessage::new(from, &self.worker, &self.progress.offers, &call)?;
        let (message, _) = queue.draw(&self.worker, label, &call)?;
        let message = queue.access.defer(&self.progress, message, DeferredContent::Offered(offered));
        Ok(self.pending_any(slot, Some((queue.access.clone(), message))))
    }

    fn pending_any(
        self: &Arc<Self>,
        slot: u32,
        deferred: Option<(Arc<QueueAccess>, Arc<DeferredMessage>)>,
    ) -> PendingSendAny {
        PendingSendAny { context: self.clone(), slot, deferred, awaited: AwaitedCondition::default() }
    }
}

impl PendingSendAny {
    /// Makes progress. Returns true if the send has ended.
    pub fn test(&self) -> bool {
        self.context.worker.progress_briefly();
        let Some((access, message)) = &self.deferred else { return true };
        if !message.is_over() {
            self.context.any_source.free_void_of_own(access.receiver);
            access.look_at_deferred();
        }
        message.is_over() || self.context.worker.check().is_err()
    }

    /// Returns `Ready` if the send has ended; otherwise `waker` is woken when it has.
    pub fn poll_end(&mut self, waker: &Waker) -> Poll<()> {
        let is_over = self.test();
        let Some(ends) = self.ends().filter(|_| !is_over) else { return Poll::Ready(()) };
        self.awaited.set(&self.context.worker, Awaited::only(ends), waker);
        Poll::Pending
    }

    /// Waits until the bytes may be reused. After an error of a time limit the send goes on, and one may wait again.
    pub fn finish(&mut self) -> Result<()> {
        let (worker, Some(ends)) = (self.context.worker.clone(), self.ends()) else { return Ok(()) };
        let deadline = worker.call_deadline();
        while !self.test() {
            let waited = worker.wait(&ends, deadline, &|| ends.call());
            if let Err(error) = waited
                && !self.test()
            {
                return Err(error);
            }
        }
        match self.deferred.take() {
            Some((_, message)) if message.is_over() => message.take_failure().map_or(Ok(()), Err),
            _ => worker.check().map_err(|cause| worker.fault(cause, || ends.call())),
        }
    }

    /// Returns true if the send has not been waited for, or its wait has reached a time limit.
    pub fn is_under_way(&self) -> bool {
        self.deferred.is_some()
    }

    /// Gives the send up. Returns true if its receiver gets nothing; false, having changed nothing, if the message is in
    /// a buffer, or the receiver has fetched it or is doing so, or the send has failed.
    pub fn cancel(&mut self) -> bool {
        let Some((access, message)) = &self.deferred else { return false };
        let is_forked = access.worker.fork_guard().is_forked();
        let is_given_up = !is_forked && access.give_up(message).unwrap_or(false); // an error shows in the wait
        if is_given_up {
            self.deferred = None;
        }
        is_given_up
    }

    /// The condition that the send has ended, or this thread can move it on.
    fn ends(&self) -> Option<Condition> {
        let (access, message) = self.deferred.clone()?;
        Some(Condition::Event(Arc::new(MessageEnds { access, message, slot: self.slot })))
    }
}
