//! What a simulation comes to.

use super::super::{BufferKind, RankPart};
use crate::network::{Time, Used};

/// What was simulated, in numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulationReport {
    /// Until the last rank's last start was over.
    pub time: Time,
    /// When the last start was over for the first rank.
    pub first_end: Time,
    /// For the rank in the middle.
    pub median_end: Time,
    /// When the first bytes began to move: before that, ranks told each other that they are ready.
    pub moves_from: Time,
    /// Steps of all ranks and starts.
    pub commands: u64,
    /// Of these, the most that one rank has, in one start.
    pub commands_max: u64,
    /// Bytes that steps moved.
    pub bytes: u64,
    /// Of these, between nodes.
    pub bytes_between: u64,
    /// The link over which most went, if any was used.
    pub busiest: Option<Used>,
    /// Most memory that a rank's part takes: [`memory_bytes`].
    pub memory_max: u64,
    /// That of all ranks together.
    pub memory_all: u64,
}

/// Bytes of a prepared step.
pub(super) const STEP_BYTES: u64 = 64;
/// Bytes of a signal.
pub(super) const SIGNAL_BYTES: u64 = 8;

/// What a rank's part takes when it is prepared: 64 bytes a step, 8 bytes a signal, and the buffers that are its own,
/// all turns of them. The program's buffers are not counted, as they would be there anyway.
pub(super) fn memory_bytes(part: &RankPart) -> u64 {
    let scratch = part.rooms().iter().map(|room| match room.used {
        BufferKind::User => 0,
        used => room.bytes * used.times(),
    });
    part.steps().len() as u64 * STEP_BYTES
        + part.counters().len() as u64 * SIGNAL_BYTES
        + scratch.sum::<u64>()
}

impl SimulationReport {
    /// The part of the time during which the busiest link carried something.
    pub fn busiest_share(&self) -> f64 {
        let busy = self.busiest.map_or(Time::ZERO, |used| used.busy);
        if self.time == Time::ZERO { 0.0 } else { busy.as_seconds() / self.time.as_seconds() }
    }
}
