//! Collectives as data: schedules, the contracts that they must fulfil, the algorithms that make them, and models of
//! networks on which they can be simulated.
//!
//! ```
//! use tasuki::schedule::{Builder, CollectiveKind, Grid, Network, Shape, SimulationError, Topology};
//!
//! fn chain(b: &mut Builder) {
//!     let data = b.buffer("data", b.bytes());
//!     for pair in b.ranks().windows(2) {
//!         let arrived = b.last_write(data.on(pair[0]));
//!         b.copy(data.on(pair[0]), data.on(pair[1])).after(arrived);
//!     }
//! }
//! let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 8192).build("my chain", chain);
//! let network = Network::new(Topology::Grid(Grid::torus(&[2, 2, 2])), 1);
//! assert!(schedule.simulate(&network)?.time.as_seconds() < 1e-5);
//! # Ok::<(), SimulationError>(())
//! ```

pub use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
pub use tasuki_schedule::network::{
    Dragonfly, FatTree, Grid, Network, Parameters, Time, Topology, WrongTopology,
};
pub use tasuki_schedule::{
    AddedStep, BYTES_MAX, BlockedStep, BufferDecl, BufferId, BufferKind, BufferSpan, Builder, COUNT_MAX,
    CheckReport, CollectiveKind, Contract, CostParameters, Counts, DATA, Dependency, EFFECTS_MAX, Edge,
    Event, EventNode, ExplicitPart, ExplicitStep, Fault, FaultSite, Forced, Graph, HostModel,
    InvalidSchedule, LAG_MAX, Location, Measurement, Name, NamedBuffer, NeighbourGraph, Origin, Placement,
    QueueId, RESULT, RankPart, ReceivedBlock, Region, START, Schedule, Selection, Shape, SignalDecl,
    SignalId, Simulation, SimulationError, SimulationProgress, SimulationReport, Step, StepEffect, StepId,
    StepKind, StepTrigger, started,
};
