//! The results of a simulation.

use super::super::{BufferKind, RankPart};
use crate::network::{Time, Used};

/// The results of a simulation. Times are counted from the beginning of the simulation.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Network, Shape, SimulationError, SimulationReport, Topology};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// let network = Network::new(Topology::Crossbar(8), 1);
/// let report: SimulationReport = schedule.simulate(&network)?;
/// assert!(report.first_end <= report.time && report.bytes == 7 * 1024);
/// # Ok::<(), SimulationError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulationReport {
    /// The time when the last start was over for all ranks.
    pub time: Time,
    /// The time when the last start was over for the first rank.
    pub first_end: Time,
    /// The median over the ranks of the time when their last start was over.
    pub median_end: Time,
    /// The time when the first bytes began to move. Before that, ranks only signalled that they are
    /// ready.
    pub moves_from: Time,
    /// Steps of all ranks and starts.
    pub steps: u64,
    /// The most steps of one rank in one start.
    pub steps_max: u64,
    /// Bytes that all steps moved.
    pub bytes: u64,
    /// Bytes that steps moved between nodes.
    pub bytes_between: u64,
    /// The link that carried the most bytes, if any was used.
    pub busiest: Option<Used>,
    /// The most memory that the part of one rank takes, in bytes: see [`memory_bytes`].
    pub memory_max: u64,
    /// The memory that the parts of all ranks take together, in bytes.
    pub memory_all: u64,
}

/// Bytes of a prepared step.
pub(super) const STEP_BYTES: u64 = 64;
/// Bytes of a signal.
pub(super) const SIGNAL_BYTES: u64 = 8;

/// The memory that a prepared part takes: 64 bytes for each step, 8 bytes for each signal, and all
/// copies of the scratch buffers. Buffers of the program are not counted, because it would have
/// them anyway.
pub(super) fn memory_bytes(part: &RankPart) -> u64 {
    let scratch = part.buffer_decls().iter().map(|decl| match decl.kind {
        BufferKind::User => 0,
        kind => decl.bytes * kind.times(),
    });
    part.steps().len() as u64 * STEP_BYTES
        + part.signal_decls().len() as u64 * SIGNAL_BYTES
        + scratch.sum::<u64>()
}

impl SimulationReport {
    /// The share of the time in which the busiest link carried bytes.
    pub fn busiest_share(&self) -> f64 {
        let busy = self.busiest.map_or(Time::ZERO, |used| used.busy);
        if self.time == Time::ZERO { 0.0 } else { busy.as_seconds() / self.time.as_seconds() }
    }
}
