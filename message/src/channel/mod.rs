//! Channels: elements of one type, in order, from one rank to another, through a ring in the receiver's memory.
//!
//! ```text
//!  sender                                             receiver
//!  begins a receive of the offer        <-- offer --  sends it: ring, capacity, type, number of counter C
//!  takes the offer at its first use     -- accept ->  in the line of C: type, number of counter R
//!  fills elements, raises C             -- C ------>  reads them
//!  uses their places again              <------ R --  releases them, raises R
//!  its last raise of C says *closed*                  its last raise of R says *dropped*
//! ```
//!
//! Both counters are private signals, each with one writer, which stores their values ([`counter`]). They begin at the
//! value that their signal had when the channel was made. From there on:
//!
//! | counter | signal of | value |
//! |---|---|---|
//! | C, committed | the receiver | 0: the offer was not accepted; else 2 + 2 for each element, and 1 if the sender is closed |
//! | R, released | the sender | 2 for each element, and 1 if the receiver was dropped |
//!
//! So a wait for one more than the last value ends with the next element, or when none will come. An element is read
//! after C was seen with it, and its place is written again after R was seen with it (`SYNC signal-raise`); no other
//! ordering is needed. Each side keeps the last value of the other's counter that it has read, and reads it again only
//! if that value leaves nothing to do.
//!
//! Where the sender reaches the ring and the line of C by stores, elements are filled in the ring itself, and read there.
//! The ring is closed memory then: a put or an atomic operation of a program that names a wrong address is refused.
//! Otherwise elements are filled in a copy at the sender, and a commit puts them, and raises C when they are visible: a
//! count does not say which of several puts have arrived. The receiver copies them out before it returns them.
//!
//! The last raise of a side ends its use of the other's memory. So the receiver frees ring and C when C says closed,
//! and the sender frees R when R says dropped ([`dropped_end`]). An end that is dropped before the offer was accepted
//! cannot say so yet: its rank does, in any of its waiting calls ([`early_drop`]).

mod counter;
mod dropped_end;
mod early_drop;
mod handshake;
mod receiver;
mod sender;

pub(crate) use dropped_end::DroppedEnd;
pub use dropped_end::KeptMemory;
pub use handshake::ChannelElement;
pub use receiver::ChannelReceiver;
pub use sender::ChannelSender;

use crate::context::Context;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::{LimitGuard, Worker};
use tasuki_core::fabric::SignalLine;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// Returns true if that member reaches a ring in the memory of this rank: both ranks reach each other, or neither does.
/// The ring can be closed memory then.
pub fn reaches_ring(context: &Context, member: Rank) -> bool {
    let Some(peer) = context.rank_of(member) else { return false };
    let any_signal = GlobalAddress::new(peer, signal_offset(0));
    matches!(context.worker.fabric().line(any_signal), Ok(SignalLine::Direct(_)))
}

/// What both ends of a channel know.
#[derive(Debug)]
struct End {
    context: Arc<Context>,
    /// The rank at the other end.
    peer: Rank,
    slot: u32,
    direction: &'static str,
    element: ChannelElement,
    /// The limit of the handle with which it was made.
    limit: Option<Duration>,
    /// Bytes that the end takes, for the report of memory.
    bytes: u64,
}

impl End {
    fn new(
        context: &Arc<Context>,
        (member, direction): (Rank, &'static str),
        slot: u32,
        element: ChannelElement,
        limit: Option<Duration>,
    ) -> Result<End> {
        let peer = context.rank_of(member).ok_or_else(|| context.no_such_member(member));
        let mut end =
            End { context: context.clone(), peer: member, slot, direction, element, limit, bytes: 0 };
        let (is_open, make) =
            (context.worker.check(), if direction == "to" { "channel_to" } else { "channel_from" });
        end.peer = peer.and_then(|peer| is_open.map(|()| peer)).map_err(|cause| end.fault(cause, make))?;
        if element.size == 0 {
            return Err(end.fault(Cause::Argument("an element needs at least one byte".into()), make));
        }
        Ok(end)
    }

    /// Counts memory that was taken for the channel.
    fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.context.progress.channels.add_bytes(bytes);
    }

    /// Stops to count memory that was freed.
    fn subtract_bytes(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.context.progress.channels.subtract_bytes(bytes);
    }

    #[inline(always)]
    fn worker(&self) -> &Arc<Worker> {
        &self.context.worker
    }

    fn limited(&self) -> Option<LimitGuard> {
        self.limit.map(|limit| self.worker().limited(limit))
    }

    /// Describes a call.
    fn call(&self, name: &str) -> String {
        format!("{name}(channel on slot {} {} rank {})", self.slot, self.direction, self.peer)
    }

    #[cold]
    fn fault(&self, cause: Cause, name: &str) -> Error {
        self.worker().fault(cause, || self.call(name)).with_peer(Some(self.peer))
    }

    /// Checks that a call may go on. Two loads.
    #[inline(always)]
    fn check(&self, name: &str) -> Result<()> {
        self.worker().check().map_err(|cause| self.fault(cause, name))
    }
}
