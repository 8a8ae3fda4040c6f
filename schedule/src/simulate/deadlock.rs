//! Why a simulation did not finish.

use super::super::{FaultSite, Name};
use crate::network::Time;
use std::fmt;

/// A step or an end of a start that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockedStep {
    /// The step or end.
    pub at: FaultSite,
    /// The signal of its rank that it waits for.
    pub signal: Name,
    /// The count of the signal over all starts.
    pub reached: u64,
    /// The count that is needed.
    pub wanted: u64,
}

/// Why a simulation did not finish.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Network, Shape, SimulationError, Topology};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// let network = Network::new(Topology::Crossbar(4), 1);
/// let error = schedule.simulate(&network).expect_err("there are 8 ranks");
/// assert_eq!(error, SimulationError::NoRoom { ranks: 8, room: 4 });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimulationError {
    /// The network has too few nodes for the ranks.
    NoRoom {
        /// Ranks of the schedule.
        ranks: usize,
        /// Ranks that the network has room for.
        room: u64,
    },
    /// A step names a rank or a signal that does not exist.
    NoSuch {
        /// The step.
        at: FaultSite,
    },
    /// A deadlock: no event is left, but some ranks are not done.
    BlockedStep {
        /// The time of the last event.
        since: Time,
        /// Number of ranks that are not done.
        ranks: usize,
        /// What the first of them wait for.
        first: Vec<BlockedStep>,
    },
}

impl fmt::Display for BlockedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedStep { at, signal, reached, wanted } = self;
        write!(f, "{at} waits until signal {signal:?} has counted {wanted}, but it has counted {reached}")
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulationError::NoRoom { ranks, room } => {
                write!(
                    f,
                    "{ranks} ranks do not fit into the network, which has room for {room}: choose a larger one"
                )
            }
            SimulationError::NoSuch { at } => write!(f, "{at} names a rank or a signal that does not exist"),
            SimulationError::BlockedStep { since, ranks, first } => {
                write!(f, "deadlock: nothing happens after {since}, and {ranks} ranks are not done")?;
                first.iter().try_for_each(|waiting| write!(f, "; {waiting}"))
            }
        }
    }
}

impl std::error::Error for SimulationError {}
