//! Why a simulation did not come to its end.

use super::super::{Name, Where};
use crate::network::Time;
use std::fmt;

/// A step or an end of a start that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Which.
    pub at: Where,
    /// For which of its rank's signals.
    pub signal: Name,
    /// What that has counted, in all starts.
    pub reached: u64,
    /// What it would have to.
    pub wanted: u64,
}

/// Why a simulation did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// There are more ranks than the network has room for.
    NoRoom {
        /// Ranks.
        ranks: usize,
        /// Ranks that it has room for.
        room: u64,
    },
    /// A step names a rank or a signal that is not there.
    NoSuch {
        /// Which.
        at: Where,
    },
    /// Nothing happens any more, but some ranks are not done.
    Waiting {
        /// Since when.
        since: Time,
        /// How many ranks.
        ranks: usize,
        /// What the first of them wait for.
        first: Vec<Waiting>,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { at, signal, reached, wanted } = self;
        write!(f, "{at} waits for {wanted} of signal {signal:?}, which has counted {reached}")
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::NoRoom { ranks, room } => {
                write!(f, "{ranks} ranks do not fit into the network, which has room for {room}")
            }
            Stuck::NoSuch { at } => write!(f, "{at} names a rank or a signal that is not there"),
            Stuck::Waiting { since, ranks, first } => {
                write!(f, "nothing happens from {since} on, and {ranks} ranks are not done")?;
                first.iter().try_for_each(|waiting| write!(f, "; {waiting}"))
            }
        }
    }
}

impl std::error::Error for Stuck {}
