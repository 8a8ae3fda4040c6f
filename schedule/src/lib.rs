//! Schedules: collectives as data.
//!
//! A schedule lists the *steps* of each rank. A step is a command with a trigger and effects; it works on named buffers
//! and signals. A rank's part is computed from the rank number alone, so no rank needs a table of all ranks.
//! [`Schedule::check`] verifies the whole schedule. A schedule may be started any number of times: *start* number k
//! waits for signal values relative to the counts of all earlier starts, so no signal is ever reset. No step of a
//! rank's start begins before the rank has started.
//!
//! Nothing in a schedule depends on the kind of the collective: its [`Contract`] says what it must achieve.

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

pub mod algorithm;
mod builder;
mod check;
pub mod collective_names;
pub mod combining_order;
mod contract;
#[cfg(feature = "files")]
pub mod goal;
#[cfg(feature = "files")]
pub mod json;
pub mod neighbour_graph;
pub mod network;
#[cfg(feature = "pictures")]
pub mod picture;
mod rank_part;
#[cfg(any(feature = "files", feature = "pictures"))]
mod schedule_error;
pub mod selection;
pub mod shape;
mod simulate;
mod step;
mod user_defined_schedule;

pub use algorithm::Algorithm;
pub use builder::{AddedStep, Builder, NamedBuffer, Region, StepId};
pub use check::{CheckReport, Dependency, Event, EventNode, Fault, FaultSite, Graph};
pub use contract::{BufferSpan, Contract, Origin};
pub use neighbour_graph::{Edge, NeighbourGraph, ReceivedBlock};
#[cfg(feature = "pictures")]
pub use picture::View;
pub use rank_part::{BufferDecl, BufferKind, Name, RankPart, SignalDecl, started};
#[cfg(any(feature = "files", feature = "pictures"))]
pub use schedule_error::ScheduleError;
pub use selection::{CostParameters, Forced, Measurement, Selection};
pub use shape::{CollectiveKind, Counts, DATA, Placement, RESULT, Shape};
pub use simulate::{
    BlockedStep, HostModel, Simulation, SimulationError, SimulationProgress, SimulationReport,
};
pub use step::{
    BufferId, EFFECTS_MAX, Location, QueueId, START, SignalId, Step, StepEffect, StepKind, StepTrigger,
};
pub use user_defined_schedule::{BYTES_MAX, COUNT_MAX, ExplicitPart, ExplicitStep, InvalidSchedule, LAG_MAX};

use std::fmt;
use std::sync::Arc;

/// The steps of all ranks, and the contract that they must fulfil.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Schedule, Shape};
/// fn direct(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     b.copy(data.on(0), data.on(1));
/// }
/// let schedule: Schedule = Shape::new(CollectiveKind::Bcast, 2, 0, 64).build("direct", direct);
/// assert_eq!((schedule.name(), schedule.ranks()), ("direct", 2));
/// assert!(schedule.check().is_ok());
/// ```
#[derive(Clone)]
pub struct Schedule {
    name: String,
    ranks: usize,
    part: Arc<dyn Fn(&mut RankPart) + Send + Sync>,
    contract: Arc<dyn Fn(usize) -> Contract + Send + Sync>,
    is_local_view: bool,
    is_trusted: bool,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({} on {} ranks)", self.name, self.ranks)
    }
}

impl Schedule {
    /// Creates a schedule for `ranks` ranks. `part` fills in the part of the rank it is called with; it takes time and
    /// memory for that part alone. `contract` returns the inputs and outputs of a rank.
    pub fn new(
        name: impl Into<String>,
        ranks: usize,
        part: impl Fn(&mut RankPart) + Send + Sync + 'static,
        contract: impl Fn(usize) -> Contract + Send + Sync + 'static,
    ) -> Schedule {
        Schedule {
            name: name.into(),
            ranks,
            part: Arc::new(part),
            contract: Arc::new(contract),
            is_local_view: false,
            is_trusted: false,
        }
    }

    /// Marks the schedule as one rank's local view: the parts of other ranks only give the
    /// locations of buffers that this rank's part names. Members that prepare such a schedule
    /// cannot compare parts; they must have agreed on them before.
    pub fn with_local_view(self) -> Schedule {
        Schedule { is_local_view: true, ..self }
    }

    /// Returns true if the schedule is one rank's local view ([`Schedule::with_local_view`]).
    pub fn is_local_view(&self) -> bool {
        self.is_local_view
    }

    /// Marks the schedule as one whose plans need no proof: plans of it are prepared without [`Schedule::check`].
    pub fn trusted(self) -> Schedule {
        Schedule { is_trusted: true, ..self }
    }

    /// Returns true if plans of the schedule need no proof ([`Schedule::trusted`]).
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// The name of the schedule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Computes the part of `rank`. Takes time and memory for this part alone.
    pub fn part(&self, rank: usize) -> RankPart {
        let mut part = RankPart::new(rank);
        (self.part)(&mut part);
        part
    }

    /// The inputs and outputs of `rank`.
    pub fn contract(&self, rank: usize) -> Contract {
        (self.contract)(rank)
    }

    /// Proves that the schedule fulfils its contract, in whatever order its steps happen and however often it is
    /// started.
    ///
    /// Errors: the first fault found. Memory grows with the square of the number of steps.
    pub fn check(&self) -> Result<CheckReport, Box<Fault>> {
        check::check(self)
    }

    /// The dependencies between the steps of one start that hold in every possible order of execution. Takes as much
    /// memory as [`Schedule::check`].
    ///
    /// Errors: a fault that leaves the dependencies undefined.
    pub fn graph(&self) -> Result<Graph, Box<Fault>> {
        check::graph(self)
    }

    /// Estimates the bytes of memory that [`Schedule::check`] takes. Reads each part once, and stops early with the sum
    /// so far once it exceeds `enough`.
    pub fn check_bytes(&self, enough: u64) -> u64 {
        check::bytes(self, enough)
    }
}
