//! Which message a call is about, for errors and for who asks what a rank waits for.

use std::fmt::{self, Debug};
use tasuki_core::base::Rank;

/// What is known of messages that are steps of a larger call: what that is called, by the slot of a step.
pub trait CallNames: Send + Sync + Debug {
    /// The call of the program's that is under way on that slot, if one is.
    fn call_on(&self, slot: u32) -> Option<String>;
}

/// A call with its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    name: &'static str,
    word: &'static str,
    /// As the call names it.
    pub(crate) peer: Rank,
    /// Its rank in the job, where the call names it otherwise.
    rank: Option<Rank>,
    /// [`CallInfo::ANY`] for any.
    pub(crate) slot: u32,
}

impl CallInfo {
    /// No slot: any of them.
    pub(crate) const ANY: u32 = u32::MAX;

    /// A send by a call of that name.
    pub(crate) fn to(name: &'static str, peer: Rank, slot: u32) -> CallInfo {
        CallInfo { name, word: "to", peer, rank: None, slot }
    }

    /// A receive by a call of that name.
    pub(crate) fn from(name: &'static str, peer: Rank, slot: u32) -> CallInfo {
        CallInfo { name, word: "from", peer, rank: None, slot }
    }

    /// The same, if the peer is a member with that rank in the job.
    pub(crate) fn of_member(self, rank: Option<Rank>) -> CallInfo {
        CallInfo { rank, ..self }
    }

    /// Whether it is a send.
    pub(crate) fn is_send(&self) -> bool {
        self.word == "to"
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for CallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallInfo { name, word, peer, rank, slot } = self;
        match *slot {
            CallInfo::ANY => write!(f, "{name}(any slot {word} ")?,
            slot => write!(f, "{name}(slot {slot} {word} ")?,
        }
        match rank {
            Some(rank) => write!(f, "rank {rank}, member {peer})"),
            None => write!(f, "rank {peer})"),
        }
    }
}
