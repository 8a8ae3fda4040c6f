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
//!
//! Two features of this crate add to the module: `pictures` draws schedules (`picture`, `View`), and `files` reads and
//! writes them as JSON and as GOAL text (`json`, `goal`).

// Writing a schedule.
pub use tasuki_schedule::{
    AddedStep, BYTES_MAX, Builder, CollectiveKind, Counts, NamedBuffer, Region, Schedule, Shape, StepId,
};
// Writing the part of one rank.
pub use tasuki_schedule::{
    BufferId, BufferSpan, Contract, DATA, Location, Origin, RESULT, RankPart, START, SignalId, StepEffect,
    StepTrigger, started,
};
// Proving.
pub use tasuki_schedule::{CheckReport, Fault, FaultSite};
// Simulating.
pub use tasuki_schedule::network::{
    Dragonfly, FatTree, Grid, Network, Parameters, Time, Topology, WrongTopology,
};
pub use tasuki_schedule::{HostModel, Simulation, SimulationError, SimulationReport};
// Algorithms.
pub use tasuki_schedule::NeighbourGraph;
pub use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
// Drawing, and files.
#[cfg(any(feature = "files", feature = "pictures"))]
pub use tasuki_schedule::ScheduleError;
#[cfg(feature = "pictures")]
pub use tasuki_schedule::{View, picture};
#[cfg(feature = "files")]
pub use tasuki_schedule::{goal, json};
