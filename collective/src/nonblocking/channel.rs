//! Carries the messages of a nonblocking collective call. Each call has its own slot. Two members send each other the
//! messages of the call on that slot, one at a time in each direction.

use crate::message_algorithms::HEADER;
use crate::message_algorithms::{Peers, different_calls, disagree};
use crate::nonblocking::task::{Awaited, lock};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{RevocableBuffer, Worker};
use tasuki_message::{Context, MessageBuffer, PendingRecv, PendingSend, SHORT_MAX};

/// Most calls of a communicator that can be under way: the slots of one bank.
pub(crate) const SLOTS: u32 = 64;

/// Sends and receives the messages of one member in one call.
pub(super) struct CallChannel {
    context: Arc<Context>,
    slot: u32,
    /// The header of its messages.
    header: u64,
    awaited: Awaited,
    /// This member's place, and the number of members.
    place: usize,
    size: usize,
    /// The receives that were posted and whose messages were not taken.
    posted: Mutex<Vec<PostedRecv>>,
    /// The latest send to each member.
    sends: Mutex<Vec<PendingSend>>,
}

/// A receive that was posted.
struct PostedRecv {
    incoming: PendingRecv,
    buffer: Arc<RevocableBuffer>,
    from: usize,
}

impl CallChannel {
    pub(super) fn new(
        context: &Arc<Context>,
        slot: u32,
        header: u64,
        awaited: Awaited,
        place: usize,
    ) -> CallChannel {
        CallChannel {
            context: context.clone(),
            slot,
            header,
            awaited,
            place,
            size: context.size(),
            posted: Mutex::default(),
            sends: Mutex::default(),
        }
    }

    /// Returns when all messages have been sent.
    pub(super) async fn flush(&self) -> Result<()> {
        loop {
            let Some(outgoing) = lock(&self.sends).pop() else { return Ok(()) };
            self.sent(outgoing).await?;
        }
    }

    /// Returns when a message has been sent.
    async fn sent(&self, mut outgoing: PendingSend) -> Result<()> {
        let to = outgoing.on().0.index();
        let sent = poll_fn(|task| {
            let mut awaited = None;
            let polled = outgoing.poll_in_wait(task.waker(), &mut awaited);
            *lock(&self.awaited) = awaited;
            polled
        });
        sent.await.map_err(|error| self.explained(error, to))
    }

    fn post(&self, bytes: usize, from: usize) -> Result<PostedRecv> {
        let room = HEADER + bytes;
        let buffer = RevocableBuffer::zeroed(if room > SHORT_MAX { room } else { 0 });
        let place = || MessageBuffer::Unregistered(buffer.clone());
        let incoming = self.context.begin_recv(room, place, Rank(from), self.slot.into())?;
        Ok(PostedRecv { incoming, buffer, from })
    }

    /// Removes the posted receive for a member.
    fn take_posted(&self, from: usize) -> Option<PostedRecv> {
        let mut posted = lock(&self.posted);
        let at = posted.iter().position(|receive| receive.from == from)?;
        Some(posted.swap_remove(at))
    }

    /// Removes the latest send to a member.
    fn take_send(&self, to: usize) -> Option<PendingSend> {
        let mut sends = lock(&self.sends);
        let at = sends.iter().position(|send| send.on().0.index() == to)?;
        Some(sends.swap_remove(at))
    }

    /// Begins a send. The bytes are copied if they cannot be sent at once.
    fn begin_send(&self, bytes: &[u8], to: usize) -> Result<()> {
        let bytes = [&self.header.to_le_bytes(), bytes].concat();
        let to = Rank(to);
        let sent = match self.context.try_begin_send(&bytes, to, self.slot.into())? {
            Some(sent) => sent,
            None => {
                let copy = MessageBuffer::Unregistered(RevocableBuffer::from_vec(bytes));
                self.context.begin_send(copy, to, self.slot.into())?
            }
        };
        lock(&self.sends).push(sent);
        Ok(())
    }

    async fn complete(&self, mut receive: PostedRecv, into: &mut [u8]) -> Result<()> {
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
        if len == into.len() && is_short {
            into.copy_from_slice(&line[HEADER..][..len]);
        } else if !is_short {
            let used =
                receive.buffer.enter().map_err(|cause| self.context.worker().fault(cause, String::new))?;
            used.view().read(0, &mut line[..HEADER]);
            let len = len.min(into.len());
            used.view().read(HEADER, &mut into[..len]);
        }
        let header = u64::from_le_bytes(line[..HEADER].try_into().unwrap_or_default());
        if header != self.header {
            return Err(different_calls(self.context.worker(), header, self.header, receive.from));
        }
        if len != into.len() {
            return Err(disagree(self.context.worker(), len as u64, into.len() as u64, receive.from));
        }
        Ok(())
    }

    /// Replaces the error that a message is too long by one that the members disagree about its length.
    fn explained(&self, error: Error, member: usize) -> Error {
        match *error.cause() {
            Cause::Truncated { len, room } => {
                let header = HEADER as u64;
                disagree(
                    self.context.worker(),
                    len.saturating_sub(header),
                    room.saturating_sub(header),
                    member,
                )
            }
            _ => error,
        }
    }
}

/// Sends are complete when they have begun, except that the send before to that member must be complete.
impl Peers for CallChannel {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> usize {
        self.size
    }

    /// Posts the receive, and finds the slots of the pair, unless the member has a posted receive.
    fn expect(&self, bytes: usize, from: usize) -> Result<()> {
        if lock(&self.posted).iter().any(|receive| receive.from == from) {
            return Ok(());
        }
        let receive = self.post(bytes, from)?;
        lock(&self.posted).push(receive);
        Ok(())
    }

    async fn send(&self, bytes: &[u8], to: usize) -> Result<()> {
        if let Some(before) = self.take_send(to) {
            self.sent(before).await?;
        }
        self.begin_send(bytes, to)
    }

    async fn recv(&self, into: &mut [u8], from: usize) -> Result<()> {
        let receive = match self.take_posted(from) {
            Some(receive) => receive,
            None => self.post(into.len(), from)?,
        };
        self.complete(receive, into).await
    }

    async fn exchange(&self, bytes: &[u8], to: usize, into: &mut [u8], from: usize) -> Result<()> {
        self.expect(into.len(), from)?;
        self.send(bytes, to).await?;
        self.recv(into, from).await
    }

    fn worker(&self) -> &Worker {
        self.context.worker()
    }
}
