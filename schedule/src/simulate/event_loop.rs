//! The event loop of the simulation.

use super::super::{FaultSite, RankPart, Schedule, SignalId, Step, StepKind};
use super::deadlock::{BlockedStep, SimulationError};
use super::engines::{Engines, QueueHead};
use super::rank::{BlockedTrigger, LiveRank};
use super::report::{SimulationReport, memory_bytes};
use super::{HostModel, Simulation, SimulationProgress};
use crate::network::{Links, Network, Ports, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct TimedEvent {
    at: Time,
    /// Events at the same time happen in the order in which they were scheduled.
    number: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    /// The call that starts has done its work.
    Started { rank: u32 },
    /// The host has computed, or values are combined. Steps that waited for that may begin.
    Computed { rank: u32 },
    /// A signal is raised.
    Raised { rank: u32, signal: SignalId, amount: u64 },
    /// An engine may be free.
    Free { engine: usize },
}

/// Number of events between two progress reports.
const EVENTS_BETWEEN: u64 = 1 << 14;
/// The most waiting steps that a deadlock report names.
const NAMED: usize = 4;

struct EventLoop<'s> {
    schedule: &'s Schedule,
    network: &'s Network,
    starts: u32,
    host: HostModel,
    watch: Option<Box<dyn FnMut(SimulationProgress) + 's>>,
    /// Number of ranks that are not done.
    ranks: Vec<Option<Box<LiveRank>>>,
    engines: Engines,
    links: Links,
    ports: Ports,
    events: BinaryHeap<Reverse<TimedEvent>>,
    numbers: u64,
    now: Time,
    made: usize,
    /// Steps of all parts.
    prepared: u64,
    /// Steps of the rank with the most.
    prepared_max: u64,
    ends: Vec<Time>,
    moves_from: Option<Time>,
    steps: u64,
    bytes: [u64; 2],
    memory: [u64; 2],
}

pub(super) fn run(asked: Simulation<'_>) -> Result<SimulationReport, SimulationError> {
    let Simulation { schedule, network, starts, host, watch } = asked;
    let ranks = schedule.ranks();
    if ranks as u64 > network.ranks() {
        return Err(SimulationError::NoRoom { ranks, room: network.ranks() });
    }
    let nodes = (ranks as u64).div_ceil(network.per_node);
    let mut run = EventLoop {
        schedule,
        network,
        starts,
        host,
        watch,
        ranks: Vec::with_capacity(ranks),
        engines: Engines::new(nodes, network.parameters.engines),
        links: Links::new(network),
        ports: Ports::new(nodes, network.parameters.engines),
        events: BinaryHeap::new(),
        numbers: 0,
        now: Time::ZERO,
        made: 0,
        prepared: 0,
        prepared_max: 0,
        ends: vec![Time::ZERO; ranks],
        moves_from: None,
        steps: 0,
        bytes: [0; 2],
        memory: [0; 2],
    };
    run.start_all()?;
    while let Some(Reverse(event)) = run.events.pop() {
        run.now = event.at;
        run.happen(event.what)?;
        if run.numbers.is_multiple_of(EVENTS_BETWEEN) {
            run.report_progress();
        }
    }
    run.outcome()
}

impl EventLoop<'_> {
    /// Starts all programs at once; the part of each is computed then.
    fn start_all(&mut self) -> Result<(), SimulationError> {
        for rank in 0..self.schedule.ranks() {
            let part = self.schedule.part(rank);
            self.look_at(&part)?;
            let memory = memory_bytes(&part);
            self.memory = [self.memory[0].max(memory), self.memory[1] + memory];
            self.ranks.push(Some(Box::new(LiveRank::new(&part))));
            self.made += 1;
            self.prepared += part.steps().len() as u64;
            self.prepared_max = self.prepared_max.max(part.steps().len() as u64);
            self.call(rank as u32);
            if (rank as u64).is_multiple_of(EVENTS_BETWEEN) {
                self.report_progress();
            }
        }
        Ok(())
    }

    /// Checks that the ranks and own signals that a part names exist.
    fn look_at(&self, part: &RankPart) -> Result<(), SimulationError> {
        let (ranks, signals) = (self.schedule.ranks(), part.signal_decls().len());
        let is_there = |step: &Step| {
            let places = match step.action {
                StepKind::Nothing => true,
                StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. } => {
                    from.rank.max(to.rank) < ranks as u32
                }
            };
            places
                && step.trigger.signal.index() < signals
                && step.effects().all(|effect| (effect.rank as usize) < ranks)
        };
        let wrong = part.steps().iter().position(|step| !is_there(step));
        let wrong_end = part.finish_conditions().iter().any(|trigger| trigger.signal.index() >= signals);
        if wrong.is_none() && !wrong_end {
            return Ok(());
        }
        Err(SimulationError::NoSuch {
            at: FaultSite { rank: part.rank(), start: 0, step: wrong, is_end: wrong.is_none() },
        })
    }

    fn report_progress(&mut self) {
        let (ranks, steps) = (self.schedule.ranks(), self.prepared * u64::from(self.starts));
        let progress = SimulationProgress { made: self.made, ranks, begun: self.steps, steps };
        if let Some(watch) = &mut self.watch {
            watch(progress);
        }
    }

    fn settle(&mut self, at: Time, what: What) {
        self.numbers += 1;
        self.events.push(Reverse(TimedEvent { at, number: self.numbers, what }));
    }

    /// A rank calls the start.
    fn call(&mut self, rank: u32) {
        self.settle(self.now + self.network.parameters.overhead, What::Started { rank });
    }

    fn happen(&mut self, what: What) -> Result<(), SimulationError> {
        match what {
            What::Started { rank } => self.started(rank),
            What::Computed { rank } => self.look_everywhere(rank),
            What::Free { engine } => self.free(engine),
            What::Raised { rank, signal, amount } => {
                // A rank that is done waits for nothing: further signals are ignored.
                let Some(live) = &mut self.ranks[rank as usize] else { return Ok(()) };
                if !live.raise(signal, amount) {
                    let at = FaultSite { rank: rank as usize, start: 0, step: None, is_end: false };
                    return Err(SimulationError::NoSuch { at });
                }
                self.look_everywhere(rank);
            }
        }
        Ok(())
    }

    fn started(&mut self, rank: u32) {
        let Some(live) = &mut self.ranks[rank as usize] else { return };
        let compute = self.host.computes(rank, live.begun);
        live.start();
        if compute > Time::ZERO {
            // Steps that are ready begin within this call.
            let lanes = live.lanes.len() as u16;
            (0..lanes).for_each(|lane| self.advance(rank, lane));
            let until = self.now + compute;
            if let Some(live) = &mut self.ranks[rank as usize] {
                live.computes = until;
            }
            self.settle(until, What::Computed { rank });
        } else {
            self.look_everywhere(rank);
        }
    }

    /// Begins the steps of a rank that are ready, and ends its start if its conditions are met.
    fn look_everywhere(&mut self, rank: u32) {
        let Some(live) = &self.ranks[rank as usize] else { return };
        let lanes = live.lanes.len() as u16;
        (0..lanes).for_each(|lane| self.advance(rank, lane));
        let Some(live) = &mut self.ranks[rank as usize] else { return };
        if live.may_end(self.now) {
            live.ended += 1;
            let starts_again = live.ended < self.starts;
            self.ends[rank as usize] = self.now;
            if starts_again {
                self.call(rank);
            }
        }
        self.let_go(rank);
    }

    /// Frees the state of a rank that is done.
    fn let_go(&mut self, rank: u32) {
        let starts = self.starts;
        let slot = &mut self.ranks[rank as usize];
        if slot.as_ref().is_some_and(|live| live.is_done(starts)) {
            *slot = None;
        }
    }

    /// Returns true if no step of the rank can begin, because its host computes.
    fn is_away(&self, rank: u32) -> bool {
        let computes = |live: &LiveRank| live.computes > self.now;
        !self.host.offloaded && self.ranks[rank as usize].as_deref().is_some_and(computes)
    }

    /// Begins the next steps of a queue, as far as they are ready and their engine is free.
    fn advance(&mut self, rank: u32, lane: u16) {
        while let Some(live) = &self.ranks[rank as usize]
            && live.ready(lane, self.now).is_some()
            && !self.is_away(rank)
        {
            let engine = self.engine_of(rank, live.lanes[usize::from(lane)].queue);
            if !self.engines.is_idle(engine, self.now) {
                let head = QueueHead { rank, lane };
                if let Some(live) = &mut self.ranks[rank as usize] {
                    live.lanes[usize::from(lane)].waits = true;
                }
                if let Some(at) = self.engines.wait(engine, head) {
                    self.settle(at.max(self.now), What::Free { engine });
                }
                return;
            }
            self.begin(engine, rank, lane);
        }
    }

    fn engine_of(&self, rank: u32, queue: u16) -> usize {
        let rank = u64::from(rank);
        self.engines.of(self.network.node_of(rank), queue, rank % self.network.per_node)
    }

    /// An engine serves the queues that wait for it.
    fn free(&mut self, engine: usize) {
        while let Some(QueueHead { rank, lane }) = self.engines.next(engine, self.now) {
            if self.is_away(rank) {
                if let Some(live) = &mut self.ranks[rank as usize] {
                    live.lanes[usize::from(lane)].waits = false;
                }
                continue;
            }
            self.begin(engine, rank, lane);
            self.advance(rank, lane);
            self.let_go(rank);
        }
        if let Some(at) = self.engines.looked_at(engine) {
            self.settle(at.max(self.now), What::Free { engine });
        }
    }

    /// Begins a step.
    fn begin(&mut self, engine: usize, rank: u32, lane: u16) {
        let Some(live) = &mut self.ranks[rank as usize] else { return };
        let step = live.begin(lane);
        self.steps += 1;
        let (arrives, leaves, at) = self.carry_out(rank, &step);
        self.engines.take(engine, leaves);
        if let (StepKind::Reduce { .. }, Some(live)) = (step.action, &mut self.ranks[rank as usize]) {
            live.combine(lane, arrives);
            self.settle(arrives, What::Computed { rank });
        }
        for effect in step.effects() {
            let comes = arrives + self.news(&step, at, effect.rank);
            let Some(live) = &mut self.ranks[rank as usize] else { return };
            let comes = live.in_order(step.queue.0, effect.rank, effect.signal, comes, self.now);
            let (rank, signal, amount) = (effect.rank, effect.signal, effect.amount);
            self.settle(comes, What::Raised { rank, signal, amount });
        }
    }

    /// The times when the bytes of a step arrive and when its engine is free, and the node of the bytes.
    fn carry_out(&mut self, rank: u32, step: &Step) -> (Time, Time, u32) {
        let costs = &self.network.parameters;
        let (from, to, bytes) = match step.action {
            StepKind::Nothing => return (self.now, self.now + costs.gap, rank),
            StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } => {
                (from, to, bytes)
            }
        };
        let asked = self.now + self.request(rank, from.rank);
        let passage = self.links.carry(self.network, from.rank.into(), to.rank.into(), bytes, asked);
        let combined = match step.action {
            StepKind::Reduce { .. } => costs.reduce_byte * bytes,
            _ => Time::ZERO,
        };
        let is_between = self.network.node_of(from.rank.into()) != self.network.node_of(to.rank.into());
        let arrives =
            if is_between { self.received(step, to.rank, bytes, passage.arrives) } else { passage.arrives };
        self.moves_from.get_or_insert(self.now);
        self.bytes[0] += bytes;
        self.bytes[1] += if is_between { bytes } else { 0 };
        (arrives + combined, self.now + (passage.leaves - asked), to.rank)
    }

    /// Returns the arrival of the last byte, given the arrival without other senders to that rank. The bytes take the
    /// engine that runs queues of this number for the receiver.
    fn received(&mut self, step: &Step, to: u32, bytes: u64, arrives: Time) -> Time {
        let costs = &self.network.parameters;
        let body = costs.byte * bytes;
        let (node, place) = (self.network.node_of(to.into()), u64::from(to) % self.network.per_node);
        let engine = self.engines.number(step.queue.0, place);
        let lasts = costs.occupied(1, bytes);
        self.ports.take(node, engine, self.now, arrives - body, lasts) + body
    }

    /// Time of a request from one rank to another.
    fn request(&self, from: u32, to: u32) -> Time {
        self.network.parameters.latency * self.network.hops(from.into(), to.into())
    }

    /// Time to raise a signal of a rank, from the place where a step's bytes are. On the node that received bytes, the
    /// engine that wrote them raises the signal with them.
    fn news(&self, step: &Step, from: u32, to: u32) -> Time {
        let travels = self.request(from, to);
        let is_inside = step.action == StepKind::Nothing && from != to;
        if is_inside { travels.max(self.network.parameters.latency) } else { travels }
    }

    fn outcome(mut self) -> Result<SimulationReport, SimulationError> {
        self.report_progress();
        let left: Vec<usize> = (0..self.ranks.len()).filter(|&rank| self.ranks[rank].is_some()).collect();
        if !left.is_empty() {
            let first = left.iter().flat_map(|&rank| self.waiting(rank)).take(NAMED).collect();
            return Err(SimulationError::BlockedStep { since: self.now, ranks: left.len(), first });
        }
        self.ends.sort_unstable();
        let end = |index: usize| self.ends.get(index).copied().unwrap_or_default();
        Ok(SimulationReport {
            time: end(self.ends.len().saturating_sub(1)),
            first_end: end(0),
            median_end: end(self.ends.len() / 2),
            moves_from: self.moves_from.unwrap_or_default(),
            steps: self.steps,
            steps_max: self.prepared_max,
            bytes: self.bytes[0],
            bytes_between: self.bytes[1],
            busiest: self.links.busiest(self.network),
            memory_max: self.memory[0],
            memory_all: self.memory[1],
        })
    }

    /// What a rank waits for, with the numbers and names of its part.
    fn waiting(&self, rank: usize) -> Vec<BlockedStep> {
        let Some(live) = &self.ranks[rank] else { return Vec::new() };
        let part = self.schedule.part(rank);
        let numbered = |(queue, place): (u16, u32)| {
            let steps = part.steps().iter().enumerate().filter(|(_, step)| step.queue.0 == queue);
            steps.map(|(number, _)| number).nth(place as usize)
        };
        let named = |unmet: BlockedTrigger| {
            let step = unmet.step.and_then(numbered);
            let at = FaultSite { rank, start: unmet.start as usize, step, is_end: step.is_none() };
            let signal = part.signal_decls()[unmet.signal.index()].name.clone();
            BlockedStep { at, signal, reached: unmet.reached, wanted: unmet.wanted }
        };
        live.unmet(self.starts).into_iter().map(named).collect()
    }
}
