//! One start of a plan as messages and computations, in the language of the simulator LogGOPSim.
//!
//! Source: Hoefler, Siebert, Lumsdaine, "Group operation assembly language" (2009); the simulator: Hoefler, Schneider,
//! Lumsdaine, "LogGOPSim" (2010). In GOAL an operation waits for others of its own rank alone, so what a rank hears of
//! another one is a message. docs/guide/plan-files.md says what becomes of what.
//!
//! ```text
//! make    a schedule as operations               write   operations as text
//! read    text as operations                     look    whether they fit each other
//! simulate  what they take on a network
//! ```

mod from_schedule;
mod parse;
mod simulate;
mod validate;
mod write;

pub use from_schedule::make;
pub use parse::parse;
pub use validate::GoalStats;
pub use write::{export, write};

/// Operations of all ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// Those of each rank.
    pub ranks: Vec<Vec<GoalOp>>,
}

/// An operation, by which others of its rank may be named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoalOp {
    /// By what it is named; empty where it is not.
    pub label: String,
    /// What it does.
    pub does: OpKind,
    /// Operations of the same rank that must be over before, in any order.
    pub requires: Vec<usize>,
    /// Operations of the same rank that must have begun before.
    pub irequires: Vec<usize>,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sends a message.
    Send {
        /// Its bytes.
        bytes: u64,
        /// To whom.
        to: usize,
        /// What it is told apart by from others to that rank.
        tag: u32,
    },
    /// Receives one.
    Recv {
        /// Its bytes.
        bytes: u64,
        /// Who sends it.
        from: usize,
        /// What it is told apart by from others of that rank.
        tag: u32,
    },
    /// Computes.
    Calc {
        /// For so long.
        units: u64,
    },
}
