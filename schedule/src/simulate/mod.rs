//! What a schedule takes on a network, in virtual time: every step of every rank, one after the other.
//!
//! **What is modelled.** A step begins when the one before it in its queue has begun, its trigger is met, and the
//! engine of its queue is free. Queue q of the l-th rank of a node runs on engine (q + l) modulo their number; it
//! does one command at a time, and of several that are ready the one that was first. Bytes take m G + g of the engine
//! and arrive L a hop and m G later (`crate::network`), later still where links are taken. At the receiver they
//! take m G + g of the engine that runs queues of that number for the rank that gets them, one transfer after the other:
//! so many senders to one receiver queue there. What a step raises is raised when its bytes are there: on the node that
//! got them at once, elsewhere as much later as the news travels, L a hop. A step that has no bytes takes g of its engine;
//! what it raises at its own rank comes at once, at another of the node after one L. What is moved between two others is
//! asked for first: the request travels to where the bytes are.
//! What one queue raises at one signal comes in order.
//!
//! **What is not.** The host's memory and caches, the time to look for commands, and what other programs do.
//!
//! The part of a rank is made when it starts, kept as its steps and counters, and let go when all are done. Equal
//! questions get equal answers, to the femtosecond.

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

/// What ranks do besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostModel {
    /// How long each computes between starting and waiting, in every start.
    pub compute: Time,
    /// How much longer than that some compute: each a part of it, another one in each start, none to all.
    pub varies: Time,
    /// Whether its steps go on meanwhile. If not, they begin only while it is in a call: starting, or waiting.
    pub offloaded: bool,
}

impl HostModel {
    /// How long a rank computes in a start: what it takes longer looks like chance, and is the same each time.
    fn computes(&self, rank: u32, start: u32) -> Time {
        // The finalizer of SplitMix64 (Steele, Lea, Flood, 2014), of which 32 bits are plenty.
        let mut bits = u64::from(start) << 32 | u64::from(rank);
        bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = u128::from((bits ^ bits >> 31) >> 32);
        let longer = (u128::from(self.varies.as_femtoseconds()) * part) >> 32;
        self.compute + Time::femtoseconds(longer as u64)
    }
}

/// How far a simulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulationProgress {
    /// Ranks whose parts are made.
    pub made: usize,
    /// Ranks.
    pub ranks: usize,
    /// Steps that have begun.
    pub begun: u64,
    /// Steps of the parts that are made, in all starts.
    pub commands: u64,
}

/// A simulation that is asked for.
pub struct Simulation<'s> {
    schedule: &'s Schedule,
    network: &'s Network,
    starts: u32,
    host: HostModel,
    watch: Option<Box<dyn FnMut(SimulationProgress) + 's>>,
}

impl<'s> Simulation<'s> {
    /// Of one start, while the hosts wait.
    pub fn new(schedule: &'s Schedule, network: &'s Network) -> Simulation<'s> {
        let host = HostModel { compute: Time::ZERO, varies: Time::ZERO, offloaded: true };
        Simulation { schedule, network, starts: 1, host, watch: None }
    }

    /// Of so many starts in a row: each rank starts again as soon as its last start is over. At least one.
    pub fn starts(mut self, starts: u32) -> Simulation<'s> {
        self.starts = starts.max(1);
        self
    }

    /// With hosts that compute.
    pub fn host(mut self, host: HostModel) -> Simulation<'s> {
        self.host = host;
        self
    }

    /// Tells now and then how far it is.
    pub fn watch(mut self, watch: impl FnMut(SimulationProgress) + 's) -> Simulation<'s> {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Runs it. Takes some hundred bytes for each rank that is not done, and as much again for each of its steps.
    pub fn run(self) -> Result<SimulationReport, SimulationError> {
        event_loop::run(self)
    }
}

impl RankPart {
    /// Roughly the bytes that a simulation takes for the rank of this part.
    pub fn simulation_bytes(&self) -> u64 {
        rank::bytes(self)
    }
}

impl Schedule {
    /// What one start takes on a network; or where it gets stuck.
    pub fn simulate(&self, network: &Network) -> Result<SimulationReport, SimulationError> {
        Simulation::new(self, network).run()
    }
}
