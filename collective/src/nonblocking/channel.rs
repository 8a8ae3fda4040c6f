//! Carries the messages of a nonblocking collective call. Each call has a slot of its own, on which a pair of members
//! exchanges its messages one at a time.

use crate::blocking::channel::HEADER;
use crate::failure::signature::{CallSignature, SIGNATURE_BITS, mismatch};
use crate::nonblocking::task::{Awaited, lock};
use bytemuck::Pod;
use std::future::poll_fn;
use std::sync::Arc;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::RevocableBuffer;
use tasuki_message::{Context, MessageBuffer, PendingRecv, PendingSend, SHORT_MAX};

/// Sends and receives the messages of one member in one call.
pub(super) struct CallChannel {
    context: Arc<Context>,
    slot: u32,
    /// The header of its messages.
    header: u64,
    awaited: Awaited,
    /// This member's place, and the number of members.
    pub(super) place: usize,
    pub(super) size: usize,
}

/// A message that is being received.
pub(super) struct ChannelRecv {
    incoming: PendingRecv,
    loan: Arc<RevocableBuffer>,
    from: Rank,
}

impl CallChannel {
    pub(super) fn new(
        context: &Arc<Context>,
        slot: u32,
        (signature, number): (CallSignature, u64),
        awaited: Awaited,
        place: usize,
        size: usize,
    ) -> CallChannel {
        let header = number << SIGNATURE_BITS | signature.bits();
        CallChannel { context: context.clone(), slot, header, awaited, place, size }
    }

    /// Returns the member `steps` places after this one, wrapping around at most once.
    pub(super) fn after(&self, steps: usize) -> usize {
        (self.place + steps) % self.size
    }

    /// Prepares a message to `member`: what the first message of a pair requires is done now, not in a later step.
    pub(super) fn prepare(&self, member: usize) -> Result<()> {
        self.context.prepare(Rank(member as u32), self.slot)
    }

    /// Begins to send values. They are copied if they cannot be sent at once.
    pub(super) fn send<T: Pod>(&self, values: &[T], to: usize) -> Result<PendingSend> {
        let bytes = [&self.header.to_le_bytes(), bytemuck::cast_slice::<T, u8>(values)].concat();
        let to = Rank(to as u32);
        match self.context.try_begin_send(&bytes, to, self.slot)? {
            Some(sent) => Ok(sent),
            None => self.context.begin_send(
                MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes)),
                to,
                self.slot,
            ),
        }
    }

    /// Returns when all of these messages have been sent.
    pub(super) async fn sent(&self, all: impl IntoIterator<Item = PendingSend>) -> Result<()> {
        for mut outgoing in all {
            let to = outgoing.on().0;
            let sent = poll_fn(|task| {
                let mut awaited = None;
                let polled = outgoing.poll_in_wait(task.waker(), &mut awaited);
                *lock(&self.awaited) = awaited;
                polled
            });
            sent.await.map_err(|error| self.explained(error, to))?;
        }
        Ok(())
    }

    /// Begins to receive `count` values.
    pub(super) fn recv<T: Pod>(&self, count: usize, from: usize) -> Result<ChannelRecv> {
        let (room, from) = (HEADER + count * size_of::<T>(), Rank(from as u32));
        let loan = RevocableBuffer::zeroed(if room > SHORT_MAX { room } else { 0 });
        let place = || MessageBuffer::Unregistered(loan.clone());
        let incoming = self.context.begin_recv(room, place, from, self.slot)?;
        Ok(ChannelRecv { incoming, loan, from })
    }

    /// Receives a message of exactly as many values as `into` holds.
    pub(super) async fn complete_recv<T: Pod>(&self, receive: ChannelRecv, into: &mut [T]) -> Result<()> {
        let into: &mut [u8] = bytemuck::cast_slice_mut(into);
        let (wanted, from) = (into.len(), receive.from);
        match self.finish_recv(receive, into).await? {
            got if got == wanted => Ok(()),
            got => Err(self.disagree(got as u64, wanted as u64, from)),
        }
    }

    /// Returns the bytes of a message, at most `room`.
    pub(super) async fn recv_up_to(&self, receive: ChannelRecv, room: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; room];
        let got = self.finish_recv(receive, &mut bytes).await?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Receives a message into `into`, and returns its bytes.
    async fn finish_recv(&self, mut receive: ChannelRecv, into: &mut [u8]) -> Result<usize> {
        let is_short = receive.incoming.is_short();
        let mut line = [0; SHORT_MAX];
        let room = if is_short { HEADER + into.len() } else { 0 };
        let got = poll_fn(|task| {
            let mut awaited = None;
            let polled = receive.incoming.poll_in_wait(&mut line[..room], task.waker(), &mut awaited);
            *lock(&self.awaited) = awaited;
            polled
        });
        let got = got.await.map_err(|error| self.explained(error, receive.from))?.len as usize;
        let len = got.saturating_sub(HEADER);
        if is_short {
            into[..len].copy_from_slice(&line[HEADER..][..len]);
        } else {
            let used =
                receive.loan.enter().map_err(|cause| self.context.worker().fault(cause, String::new))?;
            used.view().read(0, &mut line[..HEADER]);
            used.view().read(HEADER, &mut into[..len]);
        }
        let header = u64::from_le_bytes(line[..HEADER].try_into().unwrap_or_default());
        if header == self.header { Ok(len) } else { Err(self.different_calls(header, receive.from)) }
    }

    /// Returns the error that `member` is in another call, from the header of its message.
    #[cold]
    fn different_calls(&self, header: u64, member: Rank) -> Error {
        let [theirs, ours] = [header, self.header].map(CallSignature::in_word);
        let cause = mismatch(member.index(), theirs, ours);
        self.context.worker().fault(cause, || format!("a part with member {member}"))
    }

    /// Turns the error of a message that does not fit into a disagreement about its length.
    fn explained(&self, error: Error, member: Rank) -> Error {
        match *error.cause() {
            Cause::Truncated { len, room } => {
                self.disagree(len - HEADER as u64, room.saturating_sub(HEADER as u64), member)
            }
            _ => error,
        }
    }

    #[cold]
    pub(super) fn disagree(&self, one: u64, other: u64, member: Rank) -> Error {
        let cause = Cause::Disagree { what: "bytes", least: one.min(other), most: one.max(other) };
        self.context.worker().fault(cause, || format!("a part with member {member}"))
    }
}
