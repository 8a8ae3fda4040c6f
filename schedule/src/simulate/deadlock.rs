//! Why a simulation did not come to its end.

use super::super::{FaultSite, Name};
use crate::network::Time;
use std::fmt;

/// A step or an end of a start that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockedStep {
    /// Which.
    pub at: FaultSite,
    /// For which of its rank's signals.
    pub signal: Name,
    /// What that has counted, in all starts.
    pub reached: u64,
    /// What it would have to.
    pub wanted: u64,
}

/// Why a simulation did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimulationError {
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
        at: FaultSite,
    },
    /// Nothing happens any more, but some ranks are not done.
    BlockedStep {
        /// Since when.
        since: Time,
        /// How many ranks.
        ranks: usize,
        /// What the first of them wait for.
        first: Vec<BlockedStep>,
    },
}

impl fmt::Display for BlockedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedStep { at, signal, reached, wanted } = self;
        write!(f, "{at} waits for {wanted} of signal {signal:?}, which has counted {reached}")
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulationError::NoRoom { ranks, room } => {
                write!(f, "{ranks} ranks do not fit into the network, which has room for {room}")
            }
            SimulationError::NoSuch { at } => write!(f, "{at} names a rank or a signal that is not there"),
            SimulationError::BlockedStep { since, ranks, first } => {
                write!(f, "nothing happens from {since} on, and {ranks} ranks are not done")?;
                first.iter().try_for_each(|waiting| write!(f, "; {waiting}"))
            }
        }
    }
}

impl std::error::Error for SimulationError {}
