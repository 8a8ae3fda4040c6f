//! Simulates the steps of a schedule on a network, in virtual time.
//!
//! **What is modelled.** A step begins when the previous one in its queue has begun, its trigger is met, and the engine
//! of its queue is free. Queue q of the l-th rank of a node runs on engine (q + l) modulo their number. An engine runs
//! one step at a time; of several that are ready, the one that was ready first. Bytes take m G + g of the engine and
//! arrive L a hop and m G later (`crate::network`), later still if links are taken. At the receiver they take m G + g
//! of the engine that runs queues of that number for the receiving rank, one transfer after the other, so many senders
//! to one receiver queue there. Effects happen when the bytes have arrived: at once on the receiving node, and
//! elsewhere after the travel time of L a hop. A step without bytes takes g of its engine; its effects at its own rank
//! happen at once, those at another rank of the node after one L. For a copy between two other ranks, a request first
//! travels to the source. The effects of one queue on one signal happen in order.
//!
//! **What is not.** The host's memory and caches, the time to poll for steps, and the load of other programs.
//!
//! The part of a rank is computed when it starts, kept as its steps and counters, and freed when all its starts are
//! done. Results are deterministic to the femtosecond.

mod deadlock;
mod engines;
mod event_loop;
pub(super) mod rank;
mod report;
#[cfg(test)]
mod tests;

pub use deadlock::{BlockedStep, SimulationError};
pub use report::SimulationReport;

use super::{RankPart, Schedule};
use crate::network::{Network, Time};

/// What the hosts do besides.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{
///     Builder, CollectiveKind, HostModel, Network, Shape, Simulation, SimulationError, Time, Topology,
/// };
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// let network = Network::new(Topology::Crossbar(8), 1);
/// let busy = HostModel { compute: Time::nanoseconds(100_000), varies: Time::ZERO, offloaded: false };
/// let report = Simulation::new(&schedule, &network).host(busy).run()?;
/// assert!(report.time > Simulation::new(&schedule, &network).run()?.time);
/// # Ok::<(), SimulationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostModel {
    /// Time that each host computes between starting and waiting, in every start.
    pub compute: Time,
    /// The most that a host computes longer: a pseudo-random part of it, different in each start.
    pub varies: Time,
    /// True if the steps of a rank go on while its host computes. If false, they begin only while it is in a call:
    /// starting, or waiting.
    pub offloaded: bool,
}

impl HostModel {
    /// Time that a rank computes in a start. The extra part looks random, but is equal in each simulation.
    fn computes(&self, rank: u32, start: u32) -> Time {
        // The finalizer of SplitMix64 (Steele, Lea, Flood, 2014), of which 32 bits are enough.
        let mut bits = u64::from(start) << 32 | u64::from(rank);
        bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = u128::from((bits ^ bits >> 31) >> 32);
        let longer = (u128::from(self.varies.as_femtoseconds()) * part) >> 32;
        self.compute + Time::femtoseconds(longer as u64)
    }
}

/// The progress of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulationProgress {
    /// Ranks whose parts are computed.
    pub made: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Steps that have begun.
    pub begun: u64,
    /// Steps of the parts that are computed, in all starts.
    pub steps: u64,
}

/// The parameters of a simulation.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Network, Shape, Simulation, SimulationError, Topology};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// let network = Network::new(Topology::Crossbar(8), 1);
/// let once = Simulation::new(&schedule, &network).run()?;
/// let ten_times = Simulation::new(&schedule, &network).starts(10).run()?;
/// assert!(ten_times.time > once.time);
/// # Ok::<(), SimulationError>(())
/// ```
pub struct Simulation<'s> {
    schedule: &'s Schedule,
    network: &'s Network,
    starts: u32,
    host: HostModel,
    watch: Option<Box<dyn FnMut(SimulationProgress) + 's>>,
}

impl<'s> Simulation<'s> {
    /// Simulates one start; hosts only wait.
    pub fn new(schedule: &'s Schedule, network: &'s Network) -> Simulation<'s> {
        let host = HostModel { compute: Time::ZERO, varies: Time::ZERO, offloaded: true };
        Simulation { schedule, network, starts: 1, host, watch: None }
    }

    /// Simulates `starts` starts in a row, at least one: each rank starts again as soon as its last start is over.
    pub fn starts(mut self, starts: u32) -> Simulation<'s> {
        self.starts = starts.max(1);
        self
    }

    /// Lets the hosts compute.
    pub fn host(mut self, host: HostModel) -> Simulation<'s> {
        self.host = host;
        self
    }

    /// Reports the progress from time to time.
    pub fn watch(mut self, watch: impl FnMut(SimulationProgress) + 's) -> Simulation<'s> {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Runs the simulation. Takes some hundred bytes for each rank that is not done, and as much again for each of its
    /// steps.
    pub fn run(self) -> Result<SimulationReport, SimulationError> {
        event_loop::run(self)
    }
}

impl RankPart {
    /// Estimates the bytes that a simulation takes for the rank of this part.
    pub fn simulation_bytes(&self) -> u64 {
        rank::bytes(self)
    }
}

impl Schedule {
    /// Simulates one start on a network.
    ///
    /// Errors: a deadlock, or a schedule that does not fit the network.
    pub fn simulate(&self, network: &Network) -> Result<SimulationReport, SimulationError> {
        Simulation::new(self, network).run()
    }
}
