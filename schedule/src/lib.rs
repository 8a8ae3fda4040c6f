//! Schedules: collectives as data.
//!
//! A schedule says for each rank which *steps* it prepares, each a command with what it waits for and what it raises,
//! over buffers and signals that have names. It is made one rank at a time, from the rank's number alone, so nobody
//! needs a table of all ranks. It is checked as it stands ([`Schedule::check`]) and may be started any number of times:
//! *start* number k waits for signals relative to what they counted in all starts before, so nothing is ever reset. No
//! step of a rank's start begins before the rank has started.
//!
//! Nothing here knows what a broadcast is: what a schedule is to achieve is its [`Contract`].

#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

pub mod algorithm;
mod builder;
mod check;
mod contract;
#[cfg(any(feature = "files", feature = "pictures"))]
mod error;
mod explicit;
#[cfg(feature = "files")]
pub mod goal;
#[cfg(feature = "files")]
pub mod json;
pub mod names;
pub mod neighbours;
pub mod network;
#[cfg(feature = "pictures")]
pub mod picture;
mod rank_part;
pub mod selection;
pub mod shape;
mod simulate;
mod step;

pub use algorithm::Algorithm;
pub use builder::{AddedStep, Builder, NamedBuffer, Region, StepId};
pub use check::{CheckReport, Dependency, Event, EventNode, Fault, FaultSite, Graph};
pub use contract::{Contract, Origin, Span};
#[cfg(any(feature = "files", feature = "pictures"))]
pub use error::Error;
pub use explicit::{BYTES_MAX, COUNT_MAX, ExplicitPart, ExplicitStep, InvalidSchedule, LAG_MAX};
pub use neighbours::{Edge, Got, NeighbourGraph};
#[cfg(feature = "pictures")]
pub use picture::View;
pub use rank_part::{BufferDecl, BufferKind, Name, RankPart, SignalDecl, started};
pub use selection::{Costs, Forced, Measurement, Selection};
pub use shape::{CollectiveKind, Counts, DATA, Placement, RESULT, Shape};
pub use simulate::{
    BlockedStep, HostModel, Simulation, SimulationError, SimulationProgress, SimulationReport,
};
pub use step::{
    BufferId, EFFECTS_MAX, Location, QueueId, START, SignalId, Step, StepEffect, StepKind, StepTrigger,
};

use std::fmt;
use std::sync::Arc;

/// What all ranks do together.
#[derive(Clone)]
pub struct Schedule {
    name: String,
    ranks: usize,
    part: Arc<dyn Fn(&mut RankPart) + Send + Sync>,
    contract: Arc<dyn Fn(usize) -> Contract + Send + Sync>,
    is_local_view: bool,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({} on {} ranks)", self.name, self.ranks)
    }
}

impl Schedule {
    /// A schedule among so many ranks. `part` fills in what the rank contributes whose part it is given, in time and
    /// memory for that part alone; `contract` says what that rank gives and gets.
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
        }
    }

    /// The same as one rank sees it: of the parts of others it knows no more than where their buffers lie that its own
    /// part names. So members that prepare it cannot compare parts: they have agreed on them before.
    pub fn with_local_view(self) -> Schedule {
        Schedule { is_local_view: true, ..self }
    }

    /// Whether it is as one rank sees it.
    pub fn is_local_view(&self) -> bool {
        self.is_local_view
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many ranks take part.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// What that rank contributes. Costs time and memory for this part alone.
    pub fn part(&self, rank: usize) -> RankPart {
        let mut part = RankPart::new(rank);
        (self.part)(&mut part);
        part
    }

    /// What that rank gives and gets.
    pub fn contract(&self, rank: usize) -> Contract {
        (self.contract)(rank)
    }

    /// Proves that the schedule does what its contract says, in whatever order its steps happen and however often it is
    /// started; or the first fault. Costs memory that grows with the square of the number of steps.
    pub fn check(&self) -> Result<CheckReport, Box<Fault>> {
        check::check(self)
    }

    /// What waits for what within one start, whatever the order in which steps happen; or a fault for which that cannot
    /// be told. Costs as much memory as [`Schedule::check`].
    pub fn graph(&self) -> Result<Graph, Box<Fault>> {
        check::graph(self)
    }

    /// Roughly the bytes that [`Schedule::check`] takes. Costs a look at each part, and stops, with what it then has,
    /// where it is more than `enough`.
    pub fn check_bytes(&self, enough: u64) -> u64 {
        check::bytes(self, enough)
    }
}
