//! Which message a call is about, for errors and for who asks what a rank waits for.

use std::fmt;
use tasuki_core::base::Rank;

/// A call with its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    name: &'static str,
    word: &'static str,
    pub(crate) peer: Rank,
    /// [`Call::ANY`] for any.
    pub(crate) slot: u32,
}

impl Call {
    /// No slot: any of them.
    pub(crate) const ANY: u32 = u32::MAX;

    /// A send by a call of that name.
    pub(crate) fn to(name: &'static str, peer: Rank, slot: u32) -> Call {
        Call { name, word: "to", peer, slot }
    }

    /// A receive by a call of that name.
    pub(crate) fn from(name: &'static str, peer: Rank, slot: u32) -> Call {
        Call { name, word: "from", peer, slot }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { name, word, peer, slot } = self;
        if *slot == Call::ANY {
            write!(f, "{name}(any slot {word} rank {peer})")
        } else {
            write!(f, "{name}(slot {slot} {word} rank {peer})")
        }
    }
}
