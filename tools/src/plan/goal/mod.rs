//! One start of a plan as messages and computations, in the language of the simulator LogGOPSim.
//!
//! Source: Hoefler, Siebert, Lumsdaine, "Group operation assembly language" (2009); the simulator: Hoefler, Schneider,
//! Lumsdaine, "LogGOPSim" (2010). In GOAL an operation waits for others of its own rank alone, so what a rank hears of
//! another one is a message. docs/plans.md says what becomes of what.
//!
//! ```text
//! make    a schedule's graph as operations       write   operations as text
//! read    text as operations                     look    whether they fit each other
//! ```

mod look;
mod make;
mod read;
mod write;

pub(super) use look::Measured;
pub(super) use make::make;
pub(super) use read::parse;
pub(super) use write::write;

/// Operations of all ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Goal {
    pub(super) ranks: Vec<Vec<Operation>>,
}

/// An operation, by which others of its rank may be named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Operation {
    pub(super) label: String,
    pub(super) does: Does,
    /// Operations of the same rank that must be over before, in any order.
    pub(super) requires: Vec<usize>,
    /// Operations of the same rank that must have begun before.
    pub(super) irequires: Vec<usize>,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Does {
    Send { bytes: u64, to: usize, tag: u32 },
    Recv { bytes: u64, from: usize, tag: u32 },
    Calc { units: u64 },
}
