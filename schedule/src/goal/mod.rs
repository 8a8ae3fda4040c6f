//! One start of a schedule as messages and computations, in GOAL, the language of the simulator LogGOPSim.
//!
//! Source: Hoefler, Siebert, Lumsdaine, "Group operation assembly language" (2009); the simulator: Hoefler, Schneider,
//! Lumsdaine, "LogGOPSim" (2010). In GOAL, an operation waits only for others of its own rank, so a signal from another
//! rank becomes a message. docs/guide/plan-files.md describes the translation.
//!
//! ```text
//! from_schedule   a schedule as operations        write      operations as text
//! parse           text as operations              validate   checks that operations match each other
//! simulate        operations on a network
//! ```
//!
//! ```
//! # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
//! use tasuki::schedule::{Builder, CollectiveKind, Shape, goal};
//! fn star(b: &mut Builder) {
//!     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
//!     for &rank in &ranks[1..] {
//!         b.copy(data.on(ranks[0]), data.on(rank));
//!     }
//! }
//! let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
//! let mut text = Vec::new();
//! goal::export(&schedule, "a broadcast", &mut text)?;
//! let operations = goal::parse(std::str::from_utf8(&text)?)?;
//! assert_eq!(operations.ranks.len(), 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
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

/// The operations of all ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// The operations of each rank.
    pub ranks: Vec<Vec<GoalOp>>,
}

/// An operation, with a label for others of its rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoalOp {
    /// The label; empty if it has none.
    pub label: String,
    /// The action.
    pub does: OpKind,
    /// Operations of the same rank that must be over before, in any order.
    pub requires: Vec<usize>,
    /// Operations of the same rank that must have begun before.
    pub irequires: Vec<usize>,
}

/// The action of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Sends a message.
    Send {
        /// Size in bytes.
        bytes: u64,
        /// The receiver.
        to: usize,
        /// The tag, which distinguishes messages to that rank.
        tag: u32,
    },
    /// Receives a message.
    Recv {
        /// Size in bytes.
        bytes: u64,
        /// The sender.
        from: usize,
        /// The tag, which distinguishes messages from that rank.
        tag: u32,
    },
    /// Computes.
    Calc {
        /// Duration.
        units: u64,
    },
}
