//! Messages whose tickets were drawn: how they get into their buffers.
//!
//! A blocking call draws a ticket, and tries to write the message between pauses ([`DrawnMessage::write_when_free`]). A
//! message of a request is tried by whichever call of the rank waits ([`deferred`](crate::receive_queue::deferred)).

use crate::receive_queue::growing_pause::GrowingPause;
use crate::receive_queue::layout::{Header, INLINE_MAX, Offered, Place};
use crate::receive_queue::sender::{MessageLabel, QueueAccess};
use crate::receive_queue::tickets::SenderTickets;
use std::sync::Arc;
use tasuki_core::base::{Rank, Result};
use tasuki_core::engine::WaitEvent;
use tasuki_core::fabric::Refused;
use tasuki_core::node::node_state::RankStage;

/// The shortest pause of a sender that waits for a buffer, and the longest while nothing is received, in ns.
pub(crate) const PAUSE_NS: u64 = 2_000;
const PAUSE_MAX_NS: u64 = 1_000_000;
/// The time in ns in which a receiver takes a message, at best.
const TAKE_NS: u64 = 50;

/// What the buffer of a ticket gets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'b> {
    /// Nothing: the ticket was given up. The receiver must learn that no message comes, or it would wait for it, and
    /// later senders with it.
    Void,
    /// The bytes of a message that a buffer holds.
    Bytes(&'b [u8]),
    /// Where a message is that stays at its sender.
    Offered(Offered),
}

/// A message whose ticket was drawn, and which is not in its buffer yet.
#[derive(Debug)]
pub(crate) struct DrawnMessage {
    pub(crate) ticket: u64,
    pub(crate) label: MessageLabel,
    /// How many tickets ago its sender drew the last one; 0 if that was longer ago than there are buffers.
    pub(crate) before: u16,
    pub(crate) tickets: SenderTickets,
    /// True if the bytes are in the area of the buffer, and only the line is missing.
    pub(crate) is_in_area: bool,
}

impl DrawnMessage {
    /// Returns true if its buffer is free.
    #[inline]
    pub(crate) fn has_room(&mut self, access: &QueueAccess) -> Result<bool> {
        self.tickets.has_room(&access.share.counters(&access.worker), self.ticket)
    }

    /// Writes the message into its buffer, which is free. Returns false if the fabric has no room for it now.
    #[inline]
    pub(crate) fn write(&mut self, access: &QueueAccess, content: Content<'_>) -> Result<bool> {
        let place = match content {
            Content::Void => Place::Void,
            Content::Offered(offered) => Place::Offered(offered),
            Content::Bytes(bytes) if bytes.len() <= INLINE_MAX => Place::in_line(bytes),
            Content::Bytes(bytes) => {
                if !self.is_in_area {
                    access.worker.put(access.area_of(self.ticket), bytes)?;
                    self.is_in_area = true;
                }
                Place::Area(bytes.len() as u64)
            }
        };
        let MessageLabel { slot, kind, context } = self.label;
        let header = Header { source: access.worker.rank(), slot, context, kind, before: self.before, place };
        match access.write_line(self.ticket, &header) {
            Ok(()) => Ok(true),
            Err(Refused::Again | Refused::Relay) => Ok(false),
            Err(Refused::Never(cause)) => Err(access.worker.fault(*cause, || access.call(Some(slot), ""))),
        }
    }

    /// Writes the message when its buffer is free; waits for that. Calls `idle` before each pause.
    #[cold]
    pub(crate) fn write_when_free(
        &mut self,
        access: &Arc<QueueAccess>,
        content: Content<'_>,
        idle: &dyn Fn(),
    ) -> Result<()> {
        let (worker, deadline) = (&access.worker, access.worker.call_deadline());
        let call = || access.call(None, ", whose buffers are full");
        let mut pause = RoomPause::new();
        while !self.has_room(access)? {
            pause.set_next(self.tickets.taken_before(self.ticket), access.shares());
            if let Some(cause) = access.why_closed()? {
                return Err(worker.fault(cause, call));
            }
            idle();
            let room = Arc::new(Room { access: access.clone(), ticket: self.ticket });
            pause.0.wait(worker, room, deadline, &call)?;
        }
        if access.deferred.waits_for_room() {
            access.look_at_deferred(); // so that the receiver need not wait for earlier messages of this rank
        }
        // Not ended by a limit: the ticket was drawn, and its buffer is free.
        while !self.write(access, content)? {
            worker.check().map_err(|cause| worker.fault(cause, || access.call(Some(self.label.slot), "")))?;
            worker.pause();
        }
        Ok(())
    }
}

/// The pauses of a message that waits for its buffer.
#[derive(Debug)]
pub(crate) struct RoomPause(pub(crate) GrowingPause, Option<u64>);

impl RoomPause {
    pub(crate) fn new() -> RoomPause {
        RoomPause(GrowingPause::new(PAUSE_NS, PAUSE_MAX_NS), None)
    }

    /// Sets the next pause: the receiver takes so many messages first, as far as is known. A receiver that goes on is
    /// looked at when the turn of the message can come; one that does not, ever more seldom
    /// (docs/design/communication/many-to-one.md).
    pub(crate) fn set_next(&mut self, taken_before: u64, shares: u64) {
        if self.1.replace(taken_before) != Some(taken_before) {
            let turn_ns = taken_before.saturating_mul(TAKE_NS * shares);
            self.0.begin_again(PAUSE_NS.max(turn_ns));
        }
    }

    /// Returns the length of the next pause of a message that found no room, in ns.
    pub(crate) fn next_ns(&mut self, message: &DrawnMessage, access: &QueueAccess) -> u64 {
        self.set_next(message.tickets.taken_before(message.ticket), access.shares());
        self.0.take_ns()
    }
}

/// Waits until the buffer of a ticket is free.
#[derive(Debug)]
struct Room {
    access: Arc<QueueAccess>,
    ticket: u64,
}

impl WaitEvent for Room {
    fn happened(&self) -> bool {
        self.access.peeks_room(self.ticket) // where it cannot, the wait ends after a pause
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        Some((self.access.receiver, RankStage::Leaving))
    }

    fn call(&self) -> String {
        self.access.call(None, "")
    }
}
