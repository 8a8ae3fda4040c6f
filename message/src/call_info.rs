//! The call and the message that an error, or a report of what a rank waits for, is about.

use crate::typed_slot::TypedSlot;
use std::fmt::{self, Debug};
use tasuki_core::base::{Rank, ValueKind};

/// Names the calls of the program whose steps are messages of one context.
pub trait CallNames: Send + Sync + Debug {
    /// Returns the program's call that uses that slot at the moment, if there is one.
    fn call_on(&self, slot: u32) -> Option<String>;
}

/// A send or receive call and its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    name: &'static str,
    direction: &'static str,
    /// The peer's rank, as the call names it.
    pub(crate) peer: Rank,
    /// The peer's rank in the job, if the call names it by another number.
    rank: Option<Rank>,
    /// The slot; [`CallInfo::ANY`] for any slot.
    pub(crate) slot: u32,
    /// The type of the values.
    pub(crate) kind: ValueKind,
}

impl CallInfo {
    /// Stands for any slot.
    pub(crate) const ANY: u32 = u32::MAX;

    /// Describes a send by a call of that name.
    pub(crate) fn to(name: &'static str, peer: Rank, slot: impl Into<TypedSlot>) -> CallInfo {
        let TypedSlot { slot, kind } = slot.into();
        CallInfo { name, direction: "to", peer, rank: None, slot, kind }
    }

    /// Describes a receive by a call of that name.
    pub(crate) fn from(name: &'static str, peer: Rank, slot: impl Into<TypedSlot>) -> CallInfo {
        let TypedSlot { slot, kind } = slot.into();
        CallInfo { name, direction: "from", peer, rank: None, slot, kind }
    }

    /// Adds the peer's rank in the job, if the call names the peer by its rank in a smaller communicator.
    pub(crate) fn of_member(self, rank: Option<Rank>) -> CallInfo {
        CallInfo { rank, ..self }
    }

    /// Returns the peer's rank in the job.
    pub(crate) fn peer_rank(&self) -> Rank {
        self.rank.unwrap_or(self.peer)
    }

    /// Returns the slot with the type.
    pub(crate) fn typed_slot(&self) -> TypedSlot {
        TypedSlot { slot: self.slot, kind: self.kind }
    }

    /// Returns true for a send.
    pub(crate) fn is_send(&self) -> bool {
        self.direction == "to"
    }

    /// Returns the name of the call.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for CallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallInfo { name, direction, peer, rank, slot, .. } = self;
        match *slot {
            CallInfo::ANY => write!(f, "{name}(any slot {direction} ")?,
            slot => write!(f, "{name}(slot {slot} {direction} ")?,
        }
        match rank {
            Some(rank) => write!(f, "rank {rank}, member {peer})"),
            None => write!(f, "rank {peer})"),
        }
    }
}
